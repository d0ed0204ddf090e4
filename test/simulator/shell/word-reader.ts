import { type Part, ShellRefusal, ShellSyntaxError, type Word } from './syntax.ts';

const endsWord = new Set([' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')']);
const variableName = /^[A-Za-z_][A-Za-z0-9_]*/;
const specialVariables = '?$!#@*0123456789';

/** Reads the words of a shell script character by character. */
export class WordReader {
  readonly #text: string;
  at: number;

  constructor(text: string, at = 0) {
    this.#text = text;
    this.at = at;
  }

  get rest(): string {
    return this.#text.slice(this.at);
  }

  peek(): string | undefined {
    return this.#text[this.at];
  }

  looksAt(text: string): boolean {
    return this.#text.startsWith(text, this.at);
  }

  /** Skips blanks, line continuations and comments. */
  skipBlanks(): void {
    for (;;) {
      const char = this.peek();
      if (char === ' ' || char === '\t') this.at++;
      else if (this.looksAt('\\\n')) this.at += 2;
      else if (char === '#') while (this.peek() !== undefined && this.peek() !== '\n') this.at++;
      else return;
    }
  }

  /** Reads a word; undefined if another token begins here. */
  word(): Word | undefined {
    const parts: Part[] = [];
    for (let char = this.peek(); char !== undefined && !endsWord.has(char); char = this.peek()) {
      this.#part(char, parts);
    }
    return parts.length === 0 ? undefined : parts;
  }

  #part(char: string, parts: Part[]): void {
    if (char === "'") parts.push({ kind: 'text', text: this.#until("'"), quoted: true });
    else if (char === '"') this.#doubleQuoted(parts);
    else if (char === '$') parts.push(this.#expansion('plain'));
    else if (char === '`') throw new ShellRefusal('command substitution is not supported');
    else if (char === '*' || char === '?') throw new ShellRefusal('file name patterns are not supported');
    else if (char === '~' && parts.length === 0) throw new ShellRefusal('the tilde is not supported');
    else if (char === '\\') parts.push({ kind: 'text', text: this.#escaped(), quoted: true });
    else parts.push({ kind: 'text', text: this.#bare(), quoted: false });
  }

  #escaped(): string {
    this.at += 2;
    return this.#text[this.at - 1] ?? '';
  }

  /** Reads characters without a special meaning. */
  #bare(): string {
    const start = this.at;
    const ends = (char: string) => endsWord.has(char) || '\'"$`\\*?'.includes(char);
    while (this.peek() !== undefined && !ends(this.peek() as string)) this.at++;
    return this.#text.slice(start, this.at);
  }

  #until(quote: string): string {
    const end = this.#text.indexOf(quote, this.at + 1);
    if (end < 0) throw new ShellSyntaxError('unterminated quoted string');
    const text = this.#text.slice(this.at + 1, end);
    this.at = end + 1;
    return text;
  }

  #doubleQuoted(parts: Part[]): void {
    this.at++;
    let text = '';
    const flush = () => {
      parts.push({ kind: 'text', text, quoted: true });
      text = '';
    };
    for (let char = this.peek(); char !== '"'; char = this.peek()) {
      if (char === undefined) throw new ShellSyntaxError('unterminated quoted string');
      if (char === '`') throw new ShellRefusal('command substitution is not supported');
      if (char === '$') {
        flush();
        parts.push(this.#expansion('quoted'));
      } else {
        if (char === '\\' && '"\\$`\n'.includes(this.#text[this.at + 1] ?? 'x')) this.at++;
        text += this.#text[this.at] === '\n' && char === '\\' ? '' : (this.#text[this.at] ?? '');
        this.at++;
      }
    }
    this.at++;
    flush();
  }

  #expansion(how: 'plain' | 'quoted'): Part {
    const quoted = how === 'quoted';
    this.at++;
    if (this.looksAt('((')) return { kind: 'arithmetic', expression: this.#arithmetic(), quoted };
    if (this.looksAt('(')) throw new ShellRefusal('command substitution is not supported');
    if (this.looksAt('{')) return this.#braced(how);
    const name = variableName.exec(this.rest)?.[0] ?? this.#special();
    if (name === '') return { kind: 'text', text: '$', quoted };
    this.at += name.length;
    return { kind: 'variable', name, quoted };
  }

  #special(): string {
    const char = this.peek();
    return char !== undefined && specialVariables.includes(char) ? char : '';
  }

  #arithmetic(): string {
    const end = this.#text.indexOf('))', this.at);
    if (end < 0) throw new ShellSyntaxError("missing '))'");
    const expression = this.#text.slice(this.at + 2, end);
    this.at = end + 2;
    return expression;
  }

  #braced(how: 'plain' | 'quoted'): Part {
    const quoted = how === 'quoted';
    const end = this.#text.indexOf('}', this.at);
    if (end < 0) throw new ShellSyntaxError("missing '}'");
    const inside = this.#text.slice(this.at + 1, end);
    this.at = end + 1;
    const match = /^([A-Za-z_][A-Za-z0-9_]*|[?$!#@*0-9])(?:(:?)-(.*))?$/s.exec(inside);
    if (match?.[1] === undefined) throw new ShellRefusal(`the expansion \${${inside}} is not supported`);
    const [, name, colon, text] = match;
    if (text === undefined) return { kind: 'variable', name, quoted };
    const word = new WordReader(`"${text.replaceAll('"', '\\"')}"`).word() ?? [];
    return { kind: 'variable', name, quoted, fallback: { when: colon === ':' ? 'empty' : 'unset', word } };
  }
}
