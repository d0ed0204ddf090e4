/** The mount points at one moment. */
export class MountPoints {
  readonly all: readonly string[];
  readonly #sorted: readonly string[];

  constructor(all: readonly string[]) {
    this.all = all;
    this.#sorted = all.toSorted();
  }

  /** Whether there is a mount below a directory. */
  isAnyBelow(directory: string): boolean {
    const begin = `${directory}/`;
    let [low, high] = [0, this.#sorted.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#sorted[middle] ?? '') < begin) low = middle + 1;
      else high = middle;
    }
    return this.#sorted[low]?.startsWith(begin) === true;
  }
}
