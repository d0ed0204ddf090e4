import {
  type Assignment,
  type ListItem,
  literalOf,
  type Node,
  type Redirect,
  ShellRefusal,
  ShellSyntaxError,
  type Word,
} from './syntax.ts';
import { WordReader } from './word-reader.ts';

const closers = new Set(['then', 'else', 'elif', 'fi', 'do', 'done', '}']);
const assignment = /^([A-Za-z_][A-Za-z0-9_]*)=/;
const redirection = /^([012]?)(>>|>&|<<|<|>)/;

/** Parses a script; throws ShellRefusal for unsupported and ShellSyntaxError for invalid syntax. */
export function parseShell(text: string): Node {
  const parser = new Parser(text);
  const script = parser.list();
  parser.expectEnd();
  return script;
}

class Parser {
  readonly #reader: WordReader;

  constructor(text: string) {
    this.#reader = new WordReader(text);
  }

  expectEnd(): void {
    if (this.#reader.peek() !== undefined) {
      throw new ShellSyntaxError(`unexpected "${this.#reader.rest.slice(0, 10)}"`);
    }
  }

  /** Parses commands up to the end or to the word that closes the enclosing construct. */
  list(): Node {
    const items: ListItem[] = [];
    for (this.#skipSeparators(); !this.#atEnd(); this.#skipSeparators()) {
      const node = this.#andOr();
      this.#reader.skipBlanks();
      const background = this.#reader.looksAt('&');
      items.push({ node, background });
      if (background) this.#reader.at++;
      else if (!this.#atSeparator()) break;
    }
    return items.length === 1 && items[0]?.background === false ? items[0].node : { kind: 'list', items };
  }

  /** Parses the body of a compound command, which must not be empty. */
  #filledList(): Node {
    const list = this.list();
    if (list.kind !== 'list' || list.items.length > 0) return list;
    throw new ShellSyntaxError(`unexpected "${this.#keyword() || this.#reader.rest.slice(0, 10)}"`);
  }

  #atSeparator(): boolean {
    const char = this.#reader.peek();
    return char === ';' || char === '\n';
  }

  #skipSeparators(): void {
    for (this.#reader.skipBlanks(); this.#atSeparator(); this.#reader.skipBlanks()) {
      if (this.#reader.looksAt(';;')) throw new ShellSyntaxError('unexpected ";;"');
      this.#reader.at++;
    }
  }

  #atEnd(): boolean {
    const char = this.#reader.peek();
    return char === undefined || char === ')' || closers.has(this.#keyword());
  }

  /** The next unquoted word, without consuming it. */
  #keyword(): string {
    this.#reader.skipBlanks();
    return /^[^\s;&|<>()'"$`\\]+/.exec(this.#reader.rest)?.[0] ?? '';
  }

  #take(word: string): void {
    if (this.#keyword() !== word) throw new ShellSyntaxError(`expected "${word}"`);
    this.#reader.at += word.length;
  }

  #andOr(): Node {
    let left = this.#negated();
    for (;;) {
      this.#reader.skipBlanks();
      const kind = this.#reader.looksAt('&&') ? 'and' : this.#reader.looksAt('||') ? 'or' : undefined;
      if (kind === undefined) break;
      this.#reader.at += 2;
      this.#skipSeparators();
      left = { kind, left, right: this.#negated() };
    }
    if (this.#reader.looksAt('|')) throw new ShellRefusal('pipes are not supported');
    return left;
  }

  #negated(): Node {
    if (this.#keyword() !== '!') return this.#command();
    this.#take('!');
    return { kind: 'not', node: this.#negated() };
  }

  #command(): Node {
    const keyword = this.#keyword();
    if (this.#reader.looksAt('(')) return this.#subshell();
    if (keyword === '{') return this.#group();
    if (keyword === 'if') return this.#if('if');
    if (keyword === 'while' || keyword === 'until') return this.#loop(keyword);
    if (keyword === 'for') return this.#for();
    if (keyword === 'case' || keyword === 'function') throw new ShellRefusal(`"${keyword}" is not supported`);
    if (closers.has(keyword)) throw new ShellSyntaxError(`unexpected "${keyword}"`);
    return this.#simple();
  }

  #subshell(): Node {
    this.#reader.at++;
    const body = this.#filledList();
    if (!this.#reader.looksAt(')')) throw new ShellSyntaxError('expected ")"');
    this.#reader.at++;
    return { kind: 'subshell', body, redirects: this.#redirects() };
  }

  #group(): Node {
    this.#take('{');
    const body = this.#filledList();
    this.#take('}');
    return { kind: 'group', body, redirects: this.#redirects() };
  }

  #if(keyword: 'if' | 'elif'): Node {
    this.#take(keyword);
    const test = this.#filledList();
    this.#take('then');
    const body = this.#filledList();
    return { kind: 'if', test, body, otherwise: this.#otherwise() };
  }

  #otherwise(): Node | undefined {
    const next = this.#keyword();
    if (next === 'elif') return this.#if('elif');
    if (next === 'else') {
      this.#take('else');
      const body = this.#filledList();
      this.#take('fi');
      return body;
    }
    this.#take('fi');
    return undefined;
  }

  #loop(kind: 'while' | 'until'): Node {
    this.#take(kind);
    const test = this.#filledList();
    return { kind, test, body: this.#body() };
  }

  #for(): Node {
    this.#take('for');
    const name = this.#keyword();
    this.#take(name);
    this.#take('in');
    const words = this.#words();
    this.#skipSeparators();
    return { kind: 'for', name, words, body: this.#body() };
  }

  #body(): Node {
    this.#take('do');
    const body = this.#filledList();
    this.#take('done');
    return body;
  }

  #words(): readonly Word[] {
    const words: Word[] = [];
    for (;;) {
      this.#reader.skipBlanks();
      const word = this.#reader.word();
      if (word === undefined) return words;
      words.push(word);
    }
  }

  #simple(): Node {
    const assignments: Assignment[] = [];
    const words: Word[] = [];
    const redirects: Redirect[] = [];
    for (;;) {
      redirects.push(...this.#redirects());
      const word = this.#reader.word();
      if (word === undefined) break;
      const assigned = words.length === 0 ? assignmentOf(word) : undefined;
      if (assigned === undefined) words.push(word);
      else assignments.push(assigned);
    }
    if (this.#reader.looksAt('(')) throw new ShellRefusal('functions are not supported');
    if (words.length + assignments.length + redirects.length === 0) {
      throw new ShellSyntaxError(`unexpected "${this.#reader.rest.slice(0, 10)}"`);
    }
    return { kind: 'simple', assignments, words, redirects };
  }

  #redirects(): readonly Redirect[] {
    const redirects: Redirect[] = [];
    for (;;) {
      this.#reader.skipBlanks();
      const match = redirection.exec(this.#reader.rest);
      if (match === null) return redirects;
      this.#reader.at += match[0].length;
      redirects.push(this.#redirect(match[1] ?? '', match[2] ?? ''));
    }
  }

  #redirect(number: string, operator: string): Redirect {
    if (operator === '<<') throw new ShellRefusal('here-documents are not supported');
    this.#reader.skipBlanks();
    const word = this.#reader.word();
    if (word === undefined) throw new ShellSyntaxError('expected a file name');
    if (operator === '<') return { kind: 'from-file', word };
    const fd = number === '2' ? 2 : 1;
    if (operator !== '>&')
      return { kind: 'to-file', fd, word, how: operator === '>>' ? 'append' : 'replace' };
    const target = literalOf(word);
    if (target !== '1' && target !== '2')
      throw new ShellRefusal(`the redirection >&${target ?? ''} is not supported`);
    return { kind: 'to-fd', fd, target: target === '2' ? 2 : 1 };
  }
}

function assignmentOf(word: Word): Assignment | undefined {
  const [first, ...rest] = word;
  if (first?.kind !== 'text' || first.quoted) return undefined;
  const match = assignment.exec(first.text);
  if (match?.[1] === undefined) return undefined;
  const text = first.text.slice(match[0].length);
  return { name: match[1], word: [{ kind: 'text', text, quoted: true }, ...rest] };
}
