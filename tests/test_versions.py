"""What a long run has found is kept for the code that it ran on, and for no other."""

import versions


def test_the_name_of_the_code_changes_with_it_and_with_nothing_else(tmp_path, monkeypatch):
    monkeypatch.setattr(versions, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("x = 1\n")
    (tmp_path / "one.py").write_text("y = 1\n")
    before = versions.code_of("src", "one.py")
    (tmp_path / "src" / "notes.md").write_text("words")
    (tmp_path / "other.py").write_text("z = 1\n")
    assert versions.code_of("src", "one.py") == versions.code_of("one.py", "src") == before
    (tmp_path / "src" / "a.py").write_text("x = 2\n")
    changed = versions.code_of("src", "one.py")
    (tmp_path / "src" / "a.py").rename(tmp_path / "src" / "b.py")
    assert len({before, changed, versions.code_of("src", "one.py")}) == 3
