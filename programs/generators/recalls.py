"""Sites and their parts for `recalls.dl`: a common part at each site, and five others."""

from common import Example

SITES, PARTS, SUPPLIERS, COMMON = 26_400, 500, 3_000, 5


def main() -> None:
    example = Example("recalls")
    installed = {(site, site % COMMON) for site in range(SITES)}
    installed |= {
        (site, COMMON + (site * 31 + k * 17) % (PARTS - COMMON)) for site in range(SITES) for k in range(1, 5)
    }
    supplies = {(part, (part * 7 + k * 13) % SUPPLIERS) for part in range(PARTS) for k in range(6)}
    audited = {(37 * i + 11) % SITES for i in range(120)}
    recalled = set(range(0, SUPPLIERS, 5))
    example.facts("installed", installed, file="installed.facts.gz")
    example.facts("supplies", supplies)
    example.facts("audited", {(site,) for site in audited})
    example.facts("recalled", {(supplier,) for supplier in recalled})
    found = {
        (site, part, supplier)
        for site, part in installed
        if site in audited
        for supplier in [(part * 7 + k * 13) % SUPPLIERS for k in range(6)]
        if supplier in recalled
    }
    example.expected("recall", found)
    clash = {(part, (part + 97 * k) % PARTS) for part in range(PARTS) for k in range(1, 5)}
    example.facts("clash", clash)
    found = {
        (site, part, other)
        for site, part in installed
        if site in audited
        for other in [(part + 97 * k) % PARTS for k in range(1, 5)]
        if (site, other) in installed
    }
    example.expected("conflict", found)


if __name__ == "__main__":
    main()
