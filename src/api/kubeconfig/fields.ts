import type { YamlTree } from '../../lib/index.ts';

/** An error in a kubeconfig and its location. */
export interface KubeconfigProblem {
  readonly line: number;
  /**
   * The path of the field, for example `users[0].user.token`; empty for an error of the whole text.
   */
  readonly field: string;
  readonly message: string;
}

const notText = 'must be text: put it in quotes';

/**
 * A map in a kubeconfig, read field by field. A value of the wrong type is recorded and read as
 * absent, so that one pass finds every error. Unknown fields are ignored, as by kubectl.
 */
export class Section {
  readonly #fields: ReadonlyMap<string, YamlTree>;
  readonly #path: string;
  readonly #line: number;
  readonly #problems: KubeconfigProblem[];

  constructor(tree: YamlTree, path: string, problems: KubeconfigProblem[]) {
    this.#path = path;
    this.#line = tree.at.line;
    this.#problems = problems;
    if (tree.kind === 'map') this.#fields = new Map(tree.entries.map(({ key, value }) => [key, value]));
    else {
      this.#fields = new Map();
      problems.push({ line: this.#line, field: path, message: 'must be a map of fields' });
    }
  }

  /** Returns a text field; undefined if it is absent or empty. */
  text(name: string): string | undefined {
    const tree = this.#field(name);
    if (tree === undefined) return undefined;
    if (tree.kind === 'scalar' && typeof tree.value === 'string') return tree.value || undefined;
    // A YAML number is rejected because its text is lost: 0123 is read as 83.
    return this.refuse(name, notText);
  }

  flag(name: string): boolean {
    const tree = this.#field(name);
    if (tree === undefined) return false;
    if (tree.kind === 'scalar' && typeof tree.value === 'boolean') return tree.value;
    this.refuse(name, 'must be true or false');
    return false;
  }

  texts(name: string): readonly string[] {
    return this.#items(name).flatMap((item, index) => {
      if (item.kind === 'scalar' && typeof item.value === 'string') return [item.value];
      this.refuse(`${name}[${index}]`, notText, item.at.line);
      return [];
    });
  }

  section(name: string): Section | undefined {
    const tree = this.#field(name);
    return tree === undefined ? undefined : new Section(tree, this.#pathOf(name), this.#problems);
  }

  sections(name: string): readonly Section[] {
    return this.#items(name).map(
      (item, index) => new Section(item, `${this.#pathOf(name)}[${index}]`, this.#problems),
    );
  }

  /** Returns a field as a YAML tree without checking it. */
  tree(name: string): YamlTree | undefined {
    return this.#field(name);
  }

  has(name: string): boolean {
    return this.#field(name) !== undefined;
  }

  /**
   * Records an error of a field, at the line of the field, or of its section if the field is
   * absent.
   */
  refuse(name: string, message: string, line?: number): undefined {
    const at = line ?? this.#fields.get(name)?.at.line ?? this.#line;
    this.#problems.push({ line: at, field: this.#pathOf(name), message });
    return undefined;
  }

  #field(name: string): YamlTree | undefined {
    const tree = this.#fields.get(name);
    return tree?.kind === 'scalar' && tree.value === null ? undefined : tree;
  }

  #items(name: string): readonly YamlTree[] {
    const tree = this.#field(name);
    if (tree === undefined) return [];
    if (tree.kind === 'list') return tree.items;
    this.refuse(name, 'must be a list');
    return [];
  }

  #pathOf(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`;
  }
}
