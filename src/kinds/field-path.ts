import type { TextPosition, YamlTree } from '../lib/index.ts';

type Segment =
  | { readonly kind: 'field' | 'key'; readonly name: string }
  | { readonly kind: 'index'; readonly index: number };

/**
 * The path of a value in an object, such as `spec.containers[0].resources.limits[cpu]`. Immutable.
 */
export class FieldPath {
  readonly #parent: FieldPath | undefined;
  readonly #segment: Segment | undefined;

  private constructor(parent: FieldPath | undefined, segment: Segment | undefined) {
    this.#parent = parent;
    this.#segment = segment;
  }

  static readonly root: FieldPath = new FieldPath(undefined, undefined);

  /** Appends one segment per name. */
  child(...names: readonly string[]): FieldPath {
    return names.reduce<FieldPath>((path, name) => new FieldPath(path, { kind: 'field', name }), this);
  }

  index(index: number): FieldPath {
    return new FieldPath(this, { kind: 'index', index });
  }

  /** Appends the key of a map entry, which the user chose: it is written in brackets. */
  key(name: string): FieldPath {
    return new FieldPath(this, { kind: 'key', name });
  }

  /**
   * Returns the path with `from` replaced by `to` if it starts with `from`; otherwise the path
   * itself.
   */
  rebased(from: FieldPath, to: FieldPath): FieldPath {
    if (this === from) return to;
    if (this.#parent === undefined) return this;
    const parent = this.#parent.rebased(from, to);
    return parent === this.#parent ? this : new FieldPath(parent, this.#segment);
  }

  toString(): string {
    const segment = this.#segment;
    const parent = this.#parent?.toString() ?? '';
    if (segment === undefined) return '';
    if (segment.kind === 'index') return `${parent}[${segment.index}]`;
    if (segment.kind === 'key') return `${parent}[${segment.name}]`;
    return parent === '' ? segment.name : `${parent}.${segment.name}`;
  }

  /** The position of the value in its text, or of its nearest parent that is in the text. */
  positionIn(tree: YamlTree): TextPosition {
    return this.#find(tree).at;
  }

  #find(root: YamlTree): Found {
    if (this.#parent === undefined || this.#segment === undefined) return { tree: root, at: root.at };
    const above = this.#parent.#find(root);
    const found = above.tree === undefined ? undefined : step(above.tree, this.#segment);
    return found ?? { tree: undefined, at: above.at };
  }
}

interface Found {
  /**
   * The tree of the value; undefined when the text does not contain the value. In that case `at` is
   * the position of its parent.
   */
  readonly tree: YamlTree | undefined;
  readonly at: TextPosition;
}

function step(tree: YamlTree, segment: Segment): Found | undefined {
  if (segment.kind === 'index') {
    const item = tree.kind === 'list' ? tree.items[segment.index] : undefined;
    return item && { tree: item, at: item.at };
  }
  // The last value of a duplicate key counts, so its position is reported.
  const entry =
    tree.kind === 'map' ? tree.entries.findLast((candidate) => candidate.key === segment.name) : undefined;
  return entry && { tree: entry.value, at: entry.at };
}
