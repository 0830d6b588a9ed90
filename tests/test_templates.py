import pytest

from tinyclaw.templates import example_path, template_path, template_text


def test_a_template_is_read_from_where_the_package_keeps_it():
    assert template_text("models.md").startswith("# Models")
    assert template_path("models.md").is_file()


def test_a_missing_template_is_an_error_of_the_file_system():
    with pytest.raises(FileNotFoundError):
        template_text("no-such-template.md")


def test_examples_lie_beside_the_templates():
    assert example_path("x").parent.parent == template_path("y").parent.parent
