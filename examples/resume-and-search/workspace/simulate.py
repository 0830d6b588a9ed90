"""A noisy nightly job: thousands of lines, one of which matters."""

for number in range(1, 6001):
    if number == 4217:
        print("4217 WARN  record 81c3: amount -1 is negative, skipped")
    else:
        print(f"{number:4d} info  record {number * 7919 % 65536:04x}: ok")
print("done: 6000 records, 1 skipped")
