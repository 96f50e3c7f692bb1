from xoe_sim.progress import shown


def test_lines_reach_the_terminal_and_the_file_goes_away(tmp_path, capsys):
    path = tmp_path / "progress.txt"
    with shown(path), path.open("a") as lines:
        lines.write("half\n")
        lines.flush()
        lines.write("all\n")
    assert capsys.readouterr().err == "half\nall\n"
    assert not path.exists()
