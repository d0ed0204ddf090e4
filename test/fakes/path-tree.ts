/**
 * The content of directories, computed from absolute paths. Its speed does not depend on the number
 * of paths.
 */
export class PathTree {
  /** For each directory its names, each with the number of added paths at or below it. */
  readonly #inside = new Map<string, Map<string, number>>();

  /** Adds a path; must be called once for each path. */
  add(path: string): void {
    this.#count(path, 1);
  }

  /** Removes a path that was added. */
  delete(path: string): void {
    this.#count(path, -1);
  }

  /** Returns the names in a directory, in no order. */
  names(directory: string): readonly string[] {
    return [...(this.#inside.get(directory)?.keys() ?? [])];
  }

  isEmpty(directory: string): boolean {
    return !this.#inside.has(directory);
  }

  #count(path: string, by: 1 | -1): void {
    for (let end = path.length; end > 0; ) {
      const slash = path.lastIndexOf('/', end - 1);
      if (slash === -1) return;
      const directory = path.slice(0, slash);
      const names = this.#inside.get(directory) ?? new Map<string, number>();
      const name = path.slice(slash + 1, end);
      const count = (names.get(name) ?? 0) + by;
      if (count > 0) names.set(name, count);
      else names.delete(name);
      if (names.size > 0) this.#inside.set(directory, names);
      else this.#inside.delete(directory);
      end = slash;
    }
  }
}
