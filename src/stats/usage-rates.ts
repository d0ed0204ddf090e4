interface Look {
  readonly atMs: number;
  readonly cpuNanos: number;
  readonly rate: number | undefined;
}

/** Looks closer together than this say little about a rate: the last one known stays. */
const leastApartMs = 1_000;

/** How fast each of many counters grows, found by comparing one look at all of them with the one before. */
export class UsageRates {
  #looks: ReadonlyMap<string, Look> = new Map();

  /** Several may be under way at once; what the last one to end has seen counts for the next. */
  begin(): RatesPass {
    const before = this.#looks;
    const seen = new Map<string, Look>();
    return {
      note(key, atMs, cpuNanos) {
        if (cpuNanos === undefined) return undefined;
        const look = next(before.get(key), atMs, cpuNanos);
        seen.set(key, look);
        return look.rate;
      },
      end: () => {
        this.#looks = seen;
      },
    };
  }
}

/** One look at all counters. */
export interface RatesPass {
  /** Nanoseconds of CPU time a second; undefined at the first look, and for a counter that began anew. */
  note(key: string, atMs: number, cpuNanos: number | undefined): number | undefined;
  /** All there are have been noted: the others are forgotten. */
  end(): void;
}

function next(before: Look | undefined, atMs: number, cpuNanos: number): Look {
  if (before === undefined || cpuNanos < before.cpuNanos) return { atMs, cpuNanos, rate: undefined };
  const apartMs = atMs - before.atMs;
  // The clock was set back: what was known stands until it can be compared again.
  if (apartMs < 0) return { ...before, atMs, cpuNanos };
  if (apartMs < leastApartMs) return before;
  return { atMs, cpuNanos, rate: Math.round(((cpuNanos - before.cpuNanos) * 1_000) / apartMs) };
}
