import { apiError } from '../client/api-error.ts';
import { unfitPatch } from './directives.ts';
import { isJsonObject } from './json.ts';

/** The limit of API servers for the bytes that all `copy` operations of one patch add. */
const mostCopied = 3 * 1024 * 1024;
/**
 * The limit of fields that one patch may copy and compare; an ordinary patch needs a few hundred.
 */
const mostSteps = 250_000;
/**
 * The maximum number of values in a request body or patched object: checking, comparing and storing
 * an object takes some microseconds per value and blocks the event loop.
 */
export const mostValues = 40_000;
const mostText = 3 * 1024 * 1024;
const deepest = 128;

/**
 * Limits the cost of applying one patch, because a short patch can cause unbounded work and memory
 * use.
 */
export class PatchBudget {
  #copied = 0;
  #copies = 0;
  #steps = 0;

  /** Counts steps; throws when the patch exceeds its limit. */
  spend(steps: number): void {
    this.#steps += steps;
    if (this.#steps > mostSteps)
      throw patchTooLarge('the patch moves and compares too many items: split it into several patches');
  }

  /** Returns a deep copy; throws when the copies of the patch exceed their total limit. */
  copyOf(value: unknown): unknown {
    if (++this.#copies > mostValues)
      throw unfitPatch(
        `Unable to complete the copy, the copies of a patch must have at most ${mostValues} values`,
      );
    this.#count(textOf(value));
    if (Array.isArray(value)) return value.map((item) => this.copyOf(item));
    if (!isJsonObject(value)) return value;
    const fields = Object.entries(value).map(([name, inner]) => {
      this.#count(name.length + 3);
      return [name, this.copyOf(inner)] as const;
    });
    return Object.fromEntries(fields);
  }

  #count(text: number): void {
    this.#copied += text;
    if (this.#copied > mostCopied)
      throw unfitPatch(
        `Unable to complete the copy, the accumulated size increase of copy is ${this.#copied}, exceeding the limit ${mostCopied}`,
      );
  }
}

/**
 * Throws if a value has too many fields or is nested too deeply, as soon as the limit is exceeded.
 */
export function checkSize(value: unknown): void {
  let [values, text] = [0, 0];
  const visit = (inner: unknown, depth: number): void => {
    values++;
    text += textOf(inner);
    if (values > mostValues) throw patchTooLarge(`the patched object must have at most ${mostValues} values`);
    if (text > mostText) throw patchTooLarge(`limit is ${mostText}`);
    if (typeof inner !== 'object' || inner === null) return;
    if (depth > deepest) throw unfitPatch(`the patched object must be nested at most ${deepest} levels deep`);
    if (Array.isArray(inner)) for (const item of inner) visit(item, depth + 1);
    else
      for (const [name, field] of Object.entries(inner)) {
        text += name.length + 3;
        visit(field, depth + 1);
      }
  };
  visit(value, 1);
}

/**
 * Returns the approximate JSON length of a scalar, or of the brackets and names of a list or
 * object.
 */
function textOf(value: unknown): number {
  return typeof value === 'string' ? value.length + 3 : 3;
}

export function patchTooLarge(message: string): Error {
  return apiError({
    what: 'apply a patch',
    status: 413,
    apiStatus: { reason: 'RequestEntityTooLarge', message: `Request entity too large: ${message}` },
  });
}
