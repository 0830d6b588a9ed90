"""The nightly job: one line for each hour of each meter in meters.csv."""

import csv

DAY = "2026-11-29"


def main() -> None:
    written = skipped = 0
    with open("meters.csv", encoding="utf-8") as file:
        for meter in csv.DictReader(file):
            if int(meter["per_hour"]) < 0:
                print(f"{DAY} WARN  nightly.check meter={meter['id']} per_hour={meter['per_hour']} negative, meter skipped")
                skipped += 1
                continue
            for hour in range(24):
                reading = int(meter["start"]) + hour * int(meter["per_hour"])
                print(f"{DAY} INFO  nightly.write meter={meter['id']} hour={hour:02d} reading={reading:07d} unit=Wh status=ok")
            written += 1
    print(f"done: {written} meters written, {skipped} skipped")


if __name__ == "__main__":
    main()
