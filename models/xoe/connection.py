"""Opening and closing: how two ends agree on epochs, and how either is told that the other began anew.

Each end chooses the epoch of the frames that it gets, and takes no others. It is open once it has heard its own choice
from the other end: that proves that the other is there now, and that what it said is no old frame.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from enum import IntEnum

from .cyclic import EPOCH_BITS, after
from .offer import LARGEST, is_sound
from .transport import TransportSettings
from .wire import ControlBody, Message


class State(IntEnum):
    """Of one end of a connection."""

    CLOSED = 0  # nothing is sent or taken
    LISTENING = 1  # waits for the other end to open
    OPENING = 2  # asks the other end to open
    OPEN = 3
    CLOSING = 4  # asks the other end to close


class Notice(IntEnum):
    """What a connection's user is told."""

    OPENED = 0
    CLOSED = 1  # by this end
    PEER_CLOSED = 2
    PEER_RESET = 3  # the other end began anew; OPENED follows
    OPEN_FAILED = 4  # nobody answered
    LOST = 5  # a frame was sent as often as it may be


@dataclasses.dataclass(frozen=True)
class Control:
    """A control frame: ``echo`` is its header's epoch, None if the sender knows none."""

    body: ControlBody
    echo: int | None


class Connection:
    """One end's state; it neither sends nor keeps time itself.

    Args:
        offer: what this end offers for frames in the other direction; its ``epoch`` is filled in here.
        settings: ``open_timeout`` and ``retries``.
        epoch: the last epoch that was used for this connection, 0..255. It must outlive a reset.
        largest: bytes of the largest operation that this end sends in each class; what is granted must hold it.

    ``outbox`` collects the control frames to send, ``notices`` what the user is to be told. Whenever ``incarnation``
    grows, all that belonged to the connection before is void, and ``peer`` has what the other end offers.

    The owner sets ``is_drained`` to False while delivered frames wait for the responder: no other incarnation opens
    before they are gone, because what it grants would not fit beside them.
    """

    def __init__(
        self,
        offer: ControlBody,
        settings: TransportSettings,
        epoch: int = 0,
        largest: tuple[int, ...] = LARGEST,
    ) -> None:
        self.offer = offer
        self.settings = settings
        self.largest = largest
        self.state = State.CLOSED
        self.epoch = epoch  # frames to this end have it
        self.peer_epoch = 0  # frames to the other end have it
        self.peer: ControlBody | None = None
        self.incarnation = 0
        self.is_drained = True
        self.outbox: deque[Control] = deque()
        self.notices: deque[Notice] = deque()
        self.deadline: int | None = None
        self.offers_refused = 0
        self._asked = 0  # how often, since the last answer

    @property
    def proposal(self) -> int:
        """The epoch that the next incarnation has at this end: the present one's, while that is not open yet."""
        return self.epoch if self.state is State.OPENING else after(self.epoch, 1, EPOCH_BITS)

    def listen(self) -> None:
        """Wait for the other end to open; only when closed."""
        if self.state is State.CLOSED:
            self.state = State.LISTENING

    def open(self, now: int) -> None:
        """Ask the other end to open; only when closed or listening."""
        if self.state not in (State.CLOSED, State.LISTENING):
            return
        self.epoch = self.proposal
        self.state, self._asked = State.OPENING, 0
        self._ask(now)

    def close(self, now: int) -> None:
        """End the connection; what is outstanding is void."""
        if self.state is State.OPEN:
            self._void(State.CLOSING)
            self._asked = 0
            self._ask(now)
        elif self.state in (State.OPENING, State.LISTENING):
            self.state, self.deadline = State.CLOSED, None
            self.notices.append(Notice.CLOSED)

    def lose(self) -> None:
        """The other end is not reached any more."""
        self._void(State.LISTENING)
        self.notices.append(Notice.LOST)

    def tick(self, now: int) -> None:
        """Ask again, if that is due, or give up."""
        if self.deadline is None or now < self.deadline:
            return
        if self._asked <= self.settings.retries:
            self._ask(now)
            return
        notice, state = Notice.OPEN_FAILED, State.LISTENING
        if self.state is State.CLOSING:
            notice, state = Notice.CLOSED, State.CLOSED
        self.state, self.deadline = state, None
        self.notices.append(notice)

    def accepts(self, epoch: int, src_epoch: int) -> bool:
        """Whether a data frame or an acknowledgement with these epochs is to be taken.

        One of the proposed epoch tells that the other end is open, and that its word to this end was lost.
        """
        if self.state is State.OPEN and epoch == self.epoch:
            return src_epoch == self.peer_epoch
        if epoch == self.proposal and self.state not in (State.CLOSED, State.CLOSING) and self.is_drained:
            self._say(Message.OPEN, self.proposal, None)
        return False

    def receive(self, control: Control) -> None:
        """Take a control frame from the other end."""
        message, is_present = control.body.message, self._is_present(control)
        if message == Message.OPEN and not is_sound(control.body, self.largest):
            self.offers_refused += 1
        elif message == Message.OPEN and self.state not in (State.CLOSED, State.CLOSING):
            self._receive_open(control)
        elif message == Message.CLOSE and is_present:
            self._receive_close()
        elif message == Message.CLOSED and is_present and self.state is State.CLOSING:
            self.state, self.deadline = State.CLOSED, None
            self.notices.append(Notice.CLOSED)

    def _is_present(self, control: Control) -> bool:
        """Whether a frame is of the present incarnation, or the last one if there is none."""
        return (control.echo, control.body.epoch) == (self.epoch, self.peer_epoch)

    def _receive_open(self, control: Control) -> None:
        """Agree, if this is an answer to this end; answer, if the other end is not open yet.

        What answers another epoch of this end is an old frame, and must not disturb what is open.
        """
        body = control.body
        if self.state is State.OPEN and body.epoch == self.peer_epoch and control.echo in (None, self.epoch):
            pass
        elif not self.is_drained:
            return
        elif control.echo is None:
            self._say(Message.OPEN, self.proposal, body.epoch)
            return
        elif control.echo == self.proposal:
            self._establish(body)
        else:
            return
        if not body.is_open:
            self._say(Message.OPEN, self.epoch, self.peer_epoch)

    def _receive_close(self) -> None:
        if self.state is State.OPEN:
            self._void(State.LISTENING)
            self.notices.append(Notice.PEER_CLOSED)
        self._say(Message.CLOSED, self.epoch, self.peer_epoch)

    def _establish(self, peer: ControlBody) -> None:
        """Begin the incarnation that both ends have agreed on."""
        self.epoch = self.proposal
        if self.state is State.OPEN:
            self.notices.append(Notice.PEER_RESET)
        self._void(State.OPEN)
        self.peer, self.peer_epoch = peer, peer.epoch
        self.notices.append(Notice.OPENED)

    def _void(self, state: State) -> None:
        """Begin a state in which nothing of the incarnation so far counts."""
        self.state, self.deadline = state, None
        self.incarnation += 1

    def _ask(self, now: int) -> None:
        """Send OPEN or CLOSE, and wait for the answer."""
        if self.state is State.CLOSING:
            self._say(Message.CLOSE, self.epoch, self.peer_epoch)
        else:
            self._say(Message.OPEN, self.epoch, None)
        self._asked += 1
        self.deadline = now + self.settings.open_timeout

    def _say(self, message: Message, epoch: int, echo: int | None) -> None:
        is_open = self.state is State.OPEN and epoch == self.epoch
        body = dataclasses.replace(
            self.offer, message=message, epoch=epoch, echo_valid=int(echo is not None), is_open=int(is_open)
        )
        control = Control(body, echo)
        if control not in self.outbox:
            self.outbox.append(control)
