import { labelValue, qualifiedName } from '../../pods/validation/index.ts';
import { badRequest } from '../api/status-errors.ts';

/**
 * Limits the cost of selectors: each requirement is evaluated for each object of a list and watch.
 */
const maxSelectorLength: number = 64 * 1024;
export const maxRequirements = 100;

export type LabelMap = Readonly<Record<string, string>>;
export type LabelTest = (labels: LabelMap) => boolean;

interface Token {
  readonly text: string;
  readonly kind: 'word' | 'sign' | 'end';
}

/** Parses a label selector such as `app=web,tier in (a,b),!canary`; throws a StatusError. */
export function labelTests(selector: string | undefined): readonly LabelTest[] {
  checkLength(selector ?? '', 'label');
  const tokens = tokensOf(selector ?? '');
  const tests: LabelTest[] = [];
  const reader = new TokenReader(tokens);
  while (reader.peek().kind !== 'end') {
    const { text, kind } = reader.peek();
    if (kind === 'sign' && text !== '!')
      throw badRequest(`found '${text}', expected: !, identifier, or 'end of string'`);
    tests.push(requirement(reader));
    if (tests.length > maxRequirements)
      throw badRequest(`a label selector must have at most ${maxRequirements} requirements`);
    const after = reader.next();
    if (after.kind === 'end') break;
    if (after.text !== ',') throw badRequest(`found '${after.text}', expected: ',' or 'end of string'`);
    if (reader.peek().kind === 'end') throw badRequest("found '', expected: identifier after ','");
  }
  return tests;
}

export function checkLength(selector: string, of: 'label' | 'field'): void {
  if (selector.length > maxSelectorLength)
    throw badRequest(`a ${of} selector must have at most ${maxSelectorLength} characters`);
}

function tokensOf(text: string): readonly Token[] {
  const signs = /\s*(?:(!=|==|[=!<>(),])|([^\s=!<>(),]+))/y;
  const tokens: Token[] = [];
  for (let match = signs.exec(text); match !== null; match = signs.exec(text)) {
    const [, sign, word = ''] = match;
    tokens.push(sign === undefined ? { text: word, kind: 'word' } : { text: sign, kind: 'sign' });
  }
  return [...tokens, { text: '', kind: 'end' }];
}

class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(): Token {
    return this.#tokens[this.#at] ?? { text: '', kind: 'end' };
  }

  next(): Token {
    const token = this.peek();
    this.#at++;
    return token;
  }

  expect(sign: string): void {
    const token = this.next();
    if (token.kind !== 'sign' || token.text !== sign)
      throw requirementError(`found '${token.text}' expected: '${sign}'`);
  }
}

function requirement(reader: TokenReader): LabelTest {
  const isNegated = reader.peek().text === '!' && reader.next().text === '!';
  const key = checkedKey(reader.next());
  const following = reader.peek();
  const isOver = following.kind === 'end' || following.text === ',';
  // The caller rejects any text after `!key`.
  if (isNegated) return (labels) => !Object.hasOwn(labels, key);
  return isOver ? (labels) => Object.hasOwn(labels, key) : comparison(key, reader);
}

function comparison(key: string, reader: TokenReader): LabelTest {
  const operator = reader.next();
  switch (operator.text) {
    case '=':
    case '==':
      return oneOf(key, [exactValue(key, reader)]);
    case '!=':
      return not(oneOf(key, [exactValue(key, reader)]));
    case 'in':
      return oneOf(key, values(key, reader));
    case 'notin':
      return not(oneOf(key, values(key, reader)));
    case '>':
    case '<':
      return numericComparison(key, operator.text, exactValue(key, reader));
    default:
      throw unexpected(operator, 'in, notin, =, ==, !=, gt, lt');
  }
}

function oneOf(key: string, values: readonly string[]): LabelTest {
  const all = new Set(values);
  return (labels) => Object.hasOwn(labels, key) && all.has(labels[key] ?? '');
}

function not(test: LabelTest): LabelTest {
  return (labels) => !test(labels);
}

function numericComparison(key: string, operator: '<' | '>', text: string): LabelTest {
  const bound = wholeNumber(text);
  if (bound === undefined)
    throw requirementError(
      `values[0]: Invalid value: "${text}": for 'Gt', 'Lt' operators, the value must be an integer`,
    );
  return (labels) => {
    const value = wholeNumber(labels[key] ?? '');
    return value !== undefined && (operator === '>' ? value > bound : value < bound);
  };
}

function wholeNumber(text: string): bigint | undefined {
  return /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : undefined;
}

/** Parses the value of a requirement; a missing value counts as the empty string. */
function exactValue(key: string, reader: TokenReader): string {
  const token = reader.peek();
  if (token.kind === 'end' || token.text === ',') return '';
  if (token.kind === 'sign') throw unexpected(token, 'identifier');
  return checkedValue(key, reader.next().text, 0);
}

function values(key: string, reader: TokenReader): readonly string[] {
  reader.expect('(');
  const list: string[] = [];
  for (;;) {
    const token = reader.peek();
    list.push(token.kind === 'word' ? checkedValue(key, reader.next().text, list.length) : '');
    const sign = reader.next();
    if (sign.text === ')') return list;
    if (sign.text !== ',') throw unexpected(sign, "',' or ')'");
  }
}

function checkedKey(token: Token): string {
  if (token.kind !== 'word') throw unexpected(token, 'identifier');
  const problem = qualifiedName(token.text);
  if (problem.length === 0) return token.text;
  throw requirementError(`<nil>: Invalid value: "${token.text}": ${problem.join('; ')}`);
}

function checkedValue(key: string, value: string, index: number): string {
  const problem = labelValue(value);
  if (problem.length === 0) return value;
  throw requirementError(`values[${index}][${key}]: Invalid value: "${value}": ${problem.join('; ')}`);
}

function unexpected({ text }: Token, expected: string): Error {
  return requirementError(`found '${text}', expected: ${expected}`);
}

function requirementError(message: string): Error {
  return badRequest(`unable to parse requirement: ${message}`);
}
