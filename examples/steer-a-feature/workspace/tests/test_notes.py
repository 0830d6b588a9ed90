import unittest

from notes import headings


class HeadingsTest(unittest.TestCase):
    def test_headings_are_listed_without_their_marks(self):
        self.assertEqual(headings("# One\ntext\n## Two\n"), ["One", "Two"])
