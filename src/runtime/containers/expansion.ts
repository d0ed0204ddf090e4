import { KubelingError } from '../../lib/index.ts';

/**
 * The maximum total length of arguments and environment that the kernel accepts for a new process,
 * whatever the stack limit.
 */
const maxProcessBytes = 6 * 1024 * 1024;

/**
 * Limits the total size of one container's variables, command, arguments and paths: nested
 * references double the length at each step, and each reference to a large value copies it.
 */
export class ExpansionBudget {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes = maxProcessBytes) {
    this.#maxBytes = maxBytes;
  }

  /** Throws CONTAINER_CONFIG when the given number of further bytes would exceed the limit. */
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
 * Replaces `$(NAME)` by the variable's value. `$$` is a literal dollar sign; a reference to an
 * unknown variable or without a closing parenthesis is left unchanged. References inside values are
 * not expanded. The length of the result counts towards the size limit; throws CONTAINER_CONFIG
 * before exceeding it.
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
    // Stops searching for references after the last closing parenthesis, so that a text with many
    // "$(" takes linear time.
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

/**
 * Expands a subPathExpr; throws for a missing or empty variable, which would select another path.
 */
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
