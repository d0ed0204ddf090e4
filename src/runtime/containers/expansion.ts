import { KubelingError } from '../../lib/index.ts';

/** The kernel refuses to start a process whose arguments and variables are longer, whatever the limit of its stack. */
const maxProcessBytes = 6 * 1024 * 1024;

/**
 * Bounds the variables, command, arguments and paths of one container together: references to variables that refer to
 * others double in length with each step, and each reference to a large value repeats it.
 */
export class ExpansionBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes = maxProcessBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Throws CONTAINER_CONFIG where that many bytes more are too many. */
  check(bytes: number): void {
    if (this.#usedBytes + bytes <= this.#maxBytes) return;
    throw new KubelingError(
      'CONTAINER_CONFIG',
      `environment variables, command and arguments must not be longer than ${this.#maxBytes} bytes together after expansion`,
    );
  }

  take(bytes: number): void {
    this.check(bytes);
    this.#usedBytes += bytes;
  }
}

/**
 * Replaces `$(NAME)` by the value of the variable. `$$` stands for one dollar sign; a reference to an unknown variable
 * and one without a closing parenthesis stay as they are written. References in values are not expanded. Throws
 * CONTAINER_CONFIG before the result exceeds the budget, from which it is taken.
 */
export function expand(
  text: string,
  lookup: (name: string) => string | undefined,
  budget: ExpansionBudget,
): string {
  const lastCloser = text.lastIndexOf(')');
  let result = '';
  let from = 0;
  for (let at = text.indexOf('$'); at >= 0; at = text.indexOf('$', from)) {
    result += text.slice(from, at);
    const next = text[at + 1];
    // Knowing the last closer keeps a text full of openers from being searched again for each of them.
    if (next === '(' && at + 1 < lastCloser) {
      const closer = text.indexOf(')', at);
      result += lookup(text.slice(at + 2, closer)) ?? text.slice(at, closer + 1);
      budget.check(result.length);
      from = closer + 1;
    } else {
      result += '$';
      from = next === '$' ? at + 2 : at + 1;
    }
  }
  result += text.slice(from);
  budget.take(result.length);
  return result;
}

/** For paths inside volumes, where a missing or empty value would name another place than meant. */
export function expandStrictly(
  text: string,
  lookup: (name: string) => string | undefined,
  budget: ExpansionBudget,
): string {
  const missing = new Set<string>();
  const orEmpty = (name: string) => {
    const value = lookup(name) ?? '';
    if (value === '') missing.add(name);
    return value;
  };
  const expanded = expand(text, orEmpty, budget);
  if (missing.size === 0) return expanded;
  throw new KubelingError('CONTAINER_CONFIG', `missing value for ${[...missing].sort().join(', ')}`);
}
