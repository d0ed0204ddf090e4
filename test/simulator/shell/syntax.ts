/** One part of a shell word. Quoted parts are never split at their spaces. */
export type Part =
  | { readonly kind: 'text'; readonly text: string; readonly quoted: boolean }
  | {
      readonly kind: 'variable';
      readonly name: string;
      readonly quoted: boolean;
      readonly fallback?: { readonly when: 'unset' | 'empty'; readonly word: Word };
    }
  | { readonly kind: 'arithmetic'; readonly expression: string; readonly quoted: boolean };

export type Word = readonly Part[];

export type Redirect =
  | { readonly kind: 'to-file'; readonly fd: 1 | 2; readonly word: Word; readonly how: 'replace' | 'append' }
  | { readonly kind: 'to-fd'; readonly fd: 1 | 2; readonly target: 1 | 2 }
  | { readonly kind: 'from-file'; readonly word: Word };

export type Node =
  | { readonly kind: 'list'; readonly items: readonly ListItem[] }
  | { readonly kind: 'and' | 'or'; readonly left: Node; readonly right: Node }
  | { readonly kind: 'not'; readonly node: Node }
  | {
      readonly kind: 'simple';
      readonly assignments: readonly Assignment[];
      readonly words: readonly Word[];
      readonly redirects: readonly Redirect[];
    }
  | { readonly kind: 'if'; readonly test: Node; readonly body: Node; readonly otherwise: Node | undefined }
  | { readonly kind: 'while' | 'until'; readonly test: Node; readonly body: Node }
  | { readonly kind: 'for'; readonly name: string; readonly words: readonly Word[]; readonly body: Node }
  | {
      readonly kind: 'group' | 'subshell';
      readonly body: Node;
      readonly redirects: readonly Redirect[];
    };

export interface ListItem {
  readonly node: Node;
  readonly background: boolean;
}

export interface Assignment {
  readonly name: string;
  readonly word: Word;
}

/** Thrown for syntax or commands that a real shell supports and the simulated one does not. */
export class ShellRefusal extends Error {
  constructor(problem: string) {
    super(`simulated shell: ${problem}`);
    this.name = 'ShellRefusal';
  }
}

/** Thrown for invalid shell syntax. */
export class ShellSyntaxError extends Error {
  constructor(what: string) {
    super(`syntax error: ${what}`);
    this.name = 'ShellSyntaxError';
  }
}

/** The text of a word; undefined if the word contains an expansion. */
export function literalOf(word: Word | undefined): string | undefined {
  let text = '';
  for (const part of word ?? []) {
    if (part.kind !== 'text') return undefined;
    text += part.text;
  }
  return word === undefined ? undefined : text;
}

/** All simple commands of a script, including nested ones. */
export function* simpleCommands(node: Node): Generator<Extract<Node, { kind: 'simple' }>> {
  switch (node.kind) {
    case 'simple':
      yield node;
      return;
    case 'list':
      for (const item of node.items) yield* simpleCommands(item.node);
      return;
    case 'and':
    case 'or':
      yield* simpleCommands(node.left);
      yield* simpleCommands(node.right);
      return;
    case 'not':
      yield* simpleCommands(node.node);
      return;
    case 'if':
      yield* simpleCommands(node.test);
      yield* simpleCommands(node.body);
      if (node.otherwise !== undefined) yield* simpleCommands(node.otherwise);
      return;
    case 'while':
    case 'until':
      yield* simpleCommands(node.test);
      yield* simpleCommands(node.body);
      return;
    default:
      yield* simpleCommands(node.body);
  }
}
