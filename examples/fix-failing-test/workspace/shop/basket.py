"""A basket of goods and what it costs."""

from dataclasses import dataclass, field


@dataclass
class Basket:
    """Lines of (name, price in cents, count), and a discount in percent."""

    discount: int = 0
    lines: list[tuple[str, int, int]] = field(default_factory=list)

    def add(self, name: str, price: int, count: int = 1) -> None:
        self.lines.append((name, price, count))

    def total(self) -> int:
        """The price of everything in cents, after the discount."""
        whole = sum(price for _, price, _ in self.lines)
        return whole - whole * self.discount // 100
