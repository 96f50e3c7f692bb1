"""One incarnation of a connection at one end: what it has sent and taken, and what it owes the other end."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from .acknowledger import Acknowledger
from .config import BUFFER_OVERHEAD, credits_needed
from .credit import CreditReceiver, CreditSender
from .offer import grants
from .operation import Operation
from .receiver import Receiver, Verdict
from .sender import Sender
from .slots import AtomicSlots
from .transport import TransportSettings
from .wire import ATOMICS, GRID, RESPONSE_BIT, AckBody, ControlBody, FrameHeader, Kind, TrafficClass

CLASSES = (TrafficClass.REQUEST, TrafficClass.RESPONSE, TrafficClass.ATOMIC)
"""Those that have credits; frames of others are not taken."""

SACK_WORD = 8 * GRID  # bits of ``AckBody.sack``, and of each word behind it


@dataclasses.dataclass(frozen=True)
class Outgoing:
    """A data frame that this end sends: bytes of ``size`` are its operations'.

    ``atomics`` counts atomics in a request and results of atomics, which hold slots, in a response.
    """

    traffic_class: TrafficClass
    operations: tuple[Operation, ...]
    size: int
    atomics: int = 0

    @property
    def room(self) -> int:
        """Bytes that it takes in a retransmit buffer."""
        return self.size + BUFFER_OVERHEAD


@dataclasses.dataclass(frozen=True)
class Incoming:
    """A data frame that came, and the credits that it takes at this end."""

    traffic_class: TrafficClass
    operations: tuple[Operation, ...]
    credits: int


class Channel:
    """Joins the sender, the receiver, and the counts of credits and slots of an open connection.

    Args:
        offer: what this end told the other when the connection opened.
        peer: what the other end told.
        resend_buffer: bytes of frames without acknowledgement.
        settings: see ``TransportSettings``.
        now: when the connection opened, in clocks.
    """

    def __init__(
        self, offer: ControlBody, peer: ControlBody, resend_buffer: int, settings: TransportSettings, now: int
    ) -> None:
        self.offer, self.peer, self.settings = offer, peer, settings
        self.resend_buffer = resend_buffer
        self.sender: Sender[Outgoing] = Sender(min(offer.window, peer.window), settings, offer.first_seq)
        self.receiver: Receiver[Incoming] = Receiver(offer.window, peer.first_seq, settings.go_back_n)
        self.acknowledger = Acknowledger(settings, grants(offer), now)
        self.credit_senders = [CreditSender(limit, offer.first_credit) for limit in grants(peer)]
        self.credit_receivers = [CreditReceiver(peer.first_credit) for _ in CLASSES]
        self.slots = AtomicSlots(offer.atomic_slots)
        self.atomics = 0  # sent, and without an answer
        self.unacknowledged = 0  # bytes in the retransmit buffer
        self.used = [0] * len(CLASSES)  # credits of all frames that are here, by class
        self.heard = now  # when the other end was last heard
        self.credits_stale = self.credits_reconciled = self.slot_waits = 0
        self._told = self._counted = 0  # the classes whose credits are told next, in data and in acknowledgements

    @property
    def deadline(self) -> int:
        """When there is something to do if nothing happens before."""
        times = [self.acknowledger.deadline, self.heard + self.settings.silence_timeout]
        return min(times if self.sender.deadline is None else [*times, self.sender.deadline])

    def is_lost(self, now: int) -> bool:
        """Whether the other end is not reached, or not there, any more."""
        return self.sender.is_failed or now - self.heard >= self.settings.silence_timeout

    def most(self, traffic_class: TrafficClass) -> int:
        """Bytes of operations that a frame of a class may ever have, as both ends' buffers are; the MTU aside."""
        granted = self.credit_senders[traffic_class].limit << self.peer.credit_size
        return (min(granted, self.resend_buffer) - BUFFER_OVERHEAD) // GRID * GRID

    def has_room(self, traffic_class: TrafficClass, size: int) -> bool:
        """Whether a new frame with so many bytes of operations may be sent now."""
        if not self.sender.room or self.unacknowledged + size + BUFFER_OVERHEAD > self.resend_buffer:
            return False
        return self.credit_senders[traffic_class].available >= credits_needed(size, 1 << self.peer.credit_size)

    def send(self, frame: Outgoing, now: int) -> int:
        """Send a new frame, only while there is room for it; its PSN."""
        self.unacknowledged += frame.room
        self.credit_senders[frame.traffic_class].consume(credits_needed(frame.size, 1 << self.peer.credit_size))
        if frame.traffic_class == TrafficClass.ATOMIC:
            self.atomics += frame.atomics
        return self.sender.send(frame, now)

    def data_fields(self, seq: int) -> dict[str, int]:
        """What the header of a data frame says; it goes out now, and pays for what it tells."""
        told, self._told = self._told, (self._told + 1) % len(CLASSES)
        self.acknowledger.pay_with_data(told)
        credit = self.credit_receivers[told].freed
        return self._fields(seq=seq, credit_class=told, credit=credit)

    def acknowledgement(self, now: int) -> tuple[dict[str, int], bytes]:
        """Header fields and body of an acknowledgement that goes out now."""
        counted, self._counted = self._counted, (self._counted + 1) % len(CLASSES)
        self.acknowledger.pay(now)
        nack, self.receiver.owes_nack = self.receiver.owes_nack, False
        credit = self.credit_senders[counted].consumed
        fields = self._fields(seq=self.sender.next_seq, credit_class=counted, credit=credit)
        freed = [receiver.freed for receiver in self.credit_receivers]
        sack, mask = self.receiver.sack, (1 << SACK_WORD) - 1
        body = AckBody(sack & mask, *freed).pack()
        if self.offer.window > SACK_WORD:
            body += (sack >> SACK_WORD & mask).to_bytes(GRID, "big")
        return {**fields, "kind": Kind.ACK, "nack": int(nack)}, body

    def take_header(self, header: FrameHeader, now: int) -> None:
        """Take what a data frame tells besides its operations."""
        self.heard = now
        if header.ack_valid:
            self._acknowledge(header, 0, now)
        if header.credit_valid and header.credit_class in CLASSES:
            self._update_credit(header.credit_class, header.credit)

    def take_acknowledgement(self, header: FrameHeader, body: bytes, now: int) -> None:
        """Take an acknowledgement; ``body`` has at least the size of ``AckBody``."""
        self.heard = now
        told = AckBody.unpack(body)
        further = body[AckBody.SIZE :]
        words = (further[at : at + GRID] for at in range(0, len(further), GRID))
        sack = told.sack + sum(
            int.from_bytes(word, "big") << SACK_WORD * number for number, word in enumerate(words, start=1)
        )
        if header.ack_valid:
            self._acknowledge(header, sack, now)
        for traffic_class, freed in enumerate((told.freed_request, told.freed_response, told.freed_atomic)):
            self._update_credit(traffic_class, freed)
        is_level = header.seq == self.receiver.expected  # both ends have counted the same frames
        if header.credit_valid and header.credit_class in CLASSES and is_level:
            missed = self.credit_receivers[header.credit_class].reconcile(header.credit)
            if missed:
                self.credits_reconciled += 1
                self.acknowledger.take(now, urgent=True)

    def take_data(self, seq: int, frame: Incoming, now: int) -> Verdict:
        """Sort a data frame, and keep it if it is new."""
        limit = grants(self.offer)[frame.traffic_class]
        has_room = self.used[frame.traffic_class] + frame.credits <= limit
        is_next = seq == self.receiver.expected
        leaves_gap = bool(self.receiver.held)
        verdict = self.receiver.receive(seq, frame, has_room)
        if verdict is Verdict.NEW:
            self.used[frame.traffic_class] += frame.credits
        if verdict is not Verdict.NO_ROOM:
            self.acknowledger.take(now, urgent=verdict is not Verdict.NEW or not is_next or leaves_gap)
        return verdict

    def deliver(self) -> Iterator[Incoming]:
        """The frames whose turn it is; each holds its credits until they are freed."""
        for frame in self.receiver.deliver():
            self.credit_receivers[frame.traffic_class].accept(frame.credits)
            yield frame

    def free(self, frame: Incoming, now: int) -> None:
        """A frame that was delivered is not here any more."""
        self.used[frame.traffic_class] -= frame.credits
        self.credit_receivers[frame.traffic_class].free(frame.credits)
        self.acknowledger.free(now, frame.traffic_class, frame.credits)

    def answered(self, response: Operation) -> None:
        """A response came; an atomic's lets another atomic be sent."""
        if response.opcode & ~RESPONSE_BIT in ATOMICS:
            self.atomics = max(0, self.atomics - 1)

    def _fields(self, **fields: int) -> dict[str, int]:
        epochs = {"epoch": self.peer.epoch, "src_epoch": self.offer.epoch}
        return {"ack_valid": 1, "credit_valid": 1, "ack": self.receiver.expected, **epochs, **fields}

    def _acknowledge(self, header: FrameHeader, sack: int, now: int) -> None:
        for frame in self.sender.acknowledge(header.ack, sack, now, bool(header.nack)):
            self.unacknowledged -= frame.room
            if frame.traffic_class == TrafficClass.RESPONSE:
                self.slots.confirm(frame.atomics)

    def _update_credit(self, traffic_class: int, freed: int) -> None:
        sender = self.credit_senders[traffic_class]
        self.credits_stale += not sender.update(freed) and freed != sender.freed
