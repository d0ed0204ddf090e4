import { randomBytes } from 'node:crypto';
import { registryPassword, registryUser } from '../registry.ts';

/**
 * The password of the test registry, also used by other test files that run concurrently: it may
 * occur in the arguments of their programs.
 */
export const sharedPassword = 'registry password';

/** Secrets that each exist in one place only, so that a leaked one identifies its source. */
export class Canaries {
  readonly #texts = new Map<string, string>();
  readonly #forms: (readonly [name: string, form: Buffer])[] = [];

  constructor() {
    this.#watch(sharedPassword, `${registryUser}:${registryPassword}`);
  }

  /** The secret of that name; its value differs in each run. */
  of(name: string): string {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const text = `klgcanary${randomBytes(12).toString('hex')}`;
    this.#texts.set(name, text);
    this.#watch(name, text);
    return text;
  }

  /** Adds a secret that another program has created. */
  add(name: string, text: string): void {
    this.#texts.set(name, text);
    this.#watch(name, text);
  }

  /** The names of the secrets that a text or file contains, in plain text or Base64. */
  in(content: string | Buffer): readonly string[] {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    return [...new Set(this.#forms.flatMap(([name, form]) => (bytes.includes(form) ? [name] : [])))];
  }

  #watch(name: string, text: string): void {
    this.#forms.push([name, Buffer.from(text)]);
    // The Base64 forms of the secret for any offset in the encoded text, without the characters
    // that depend on adjacent bytes.
    for (const shift of [0, 1, 2]) {
      const encoded = Buffer.from(`${'x'.repeat(shift)}${text}`)
        .toString('base64')
        .replaceAll('=', '');
      this.#forms.push([name, Buffer.from(encoded.slice(shift === 0 ? 0 : 4, -3))]);
    }
  }
}
