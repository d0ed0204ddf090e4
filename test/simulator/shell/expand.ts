import { type Part, ShellRefusal, type Word } from './syntax.ts';

/** A source of shell variables; undefined for unset variables. */
export interface Variables {
  get(name: string): string | undefined;
  /** The words of `$@`. */
  readonly positional: readonly string[];
}

/** Expands words: unquoted values are split at their blanks and removed when empty. */
export function expandWords(words: readonly Word[], variables: Variables): readonly string[] {
  return words.flatMap((word) => expandWord(word, variables));
}

/** Expands a word without splitting, as for assignments and file names. */
export function expandText(word: Word, variables: Variables): string {
  return word.map((part) => partValue(part, variables)).join('');
}

function expandWord(word: Word, variables: Variables): readonly string[] {
  const fields: string[] = [];
  let open: string | undefined;
  const put = (text: string) => {
    open = (open ?? '') + text;
  };
  const close = () => {
    if (open !== undefined) fields.push(open);
    open = undefined;
  };
  for (const part of word) {
    if (isAllArguments(part)) {
      for (const [index, value] of variables.positional.entries()) {
        if (index > 0) close();
        put(value);
      }
    } else if (part.quoted || part.kind === 'text') put(partValue(part, variables));
    else splitInto(partValue(part, variables), put, close);
  }
  close();
  return fields;
}

function isAllArguments(part: Part): boolean {
  return part.kind === 'variable' && part.name === '@' && part.quoted;
}

function splitInto(value: string, put: (text: string) => void, close: () => void): void {
  for (const piece of value.split(/([ \t\n]+)/)) {
    if (piece === '') continue;
    if (/^[ \t\n]/.test(piece)) close();
    else put(piece);
  }
}

function partValue(part: Part, variables: Variables): string {
  if (part.kind === 'text') return part.text;
  if (part.kind === 'arithmetic') return String(new Sum(part.expression, variables).value());
  const value =
    part.name === '@' || part.name === '*' ? variables.positional.join(' ') : variables.get(part.name);
  const { fallback } = part;
  const missing = fallback?.when === 'empty' ? value === undefined || value === '' : value === undefined;
  return fallback !== undefined && missing ? expandText(fallback.word, variables) : (value ?? '');
}

/** An evaluator of integer expressions with + - * / % and parentheses. */
class Sum {
  readonly #tokens: readonly string[];
  readonly #variables: Variables;
  #at = 0;

  constructor(expression: string, variables: Variables) {
    this.#tokens = expression.match(/\d+|[A-Za-z_][A-Za-z0-9_]*|\$[A-Za-z_][A-Za-z0-9_]*|\S/g) ?? [];
    this.#variables = variables;
  }

  value(): number {
    const value = this.#sum();
    if (this.#at < this.#tokens.length)
      throw new ShellRefusal(`"${this.#tokens[this.#at]}" in a sum is not supported`);
    return value;
  }

  #sum(): number {
    let value = this.#product();
    for (let sign = this.#take('+', '-'); sign !== undefined; sign = this.#take('+', '-')) {
      value = sign === '+' ? value + this.#product() : value - this.#product();
    }
    return value;
  }

  #product(): number {
    let value = this.#factor();
    for (let sign = this.#take('*', '/', '%'); sign !== undefined; sign = this.#take('*', '/', '%')) {
      const right = this.#factor();
      value = sign === '*' ? value * right : sign === '/' ? Math.trunc(value / right) : value % right;
    }
    return value;
  }

  #factor(): number {
    if (this.#take('-') !== undefined) return -this.#factor();
    if (this.#take('(') !== undefined) {
      const value = this.#sum();
      this.#take(')');
      return value;
    }
    const token = this.#tokens[this.#at++] ?? '';
    if (/^\d+$/.test(token)) return Number(token);
    if (!/^\$?[A-Za-z_]/.test(token)) throw new ShellRefusal(`"${token}" in a sum is not supported`);
    return Number(this.#variables.get(token.replace('$', '')) ?? 0) || 0;
  }

  #take(...signs: readonly string[]): string | undefined {
    const token = this.#tokens[this.#at];
    if (token === undefined || !signs.includes(token)) return undefined;
    this.#at++;
    return token;
  }
}
