import unittest

from shop.basket import Basket


class BasketTest(unittest.TestCase):
    def test_a_single_thing_costs_its_price(self):
        basket = Basket()
        basket.add("tea", 450)
        self.assertEqual(basket.total(), 450)

    def test_the_count_is_paid(self):
        basket = Basket()
        basket.add("tea", 450, 3)
        self.assertEqual(basket.total(), 1350)

    def test_a_discount_is_taken_off(self):
        basket = Basket(discount=10)
        basket.add("tea", 450)
        self.assertEqual(basket.total(), 405)


if __name__ == "__main__":
    unittest.main()
