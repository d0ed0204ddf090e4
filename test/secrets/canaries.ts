import { randomBytes } from 'node:crypto';
import { registryPassword, registryUser } from '../registry.ts';

/** Test files that run at the same time push images with it, so it also stands in the arguments of their programs. */
export const sharedPassword = 'registry password';

/** Secrets of which each is in one place only, so that a leaked one names its source. */
export class Canaries {
  readonly #texts = new Map<string, string>();
  readonly #forms: (readonly [name: string, form: Buffer])[] = [];

  constructor() {
    this.#watch(sharedPassword, `${registryUser}:${registryPassword}`);
  }

  /** The secret of that name; another one in each run. */
  of(name: string): string {
    const known = this.#texts.get(name);
    if (known !== undefined) return known;
    const text = `klgcanary${randomBytes(12).toString('hex')}`;
    this.#texts.set(name, text);
    this.#watch(name, text);
    return text;
  }

  /** A secret that others have made. */
  add(name: string, text: string): void {
    this.#texts.set(name, text);
    this.#watch(name, text);
  }

  /** The names of those in a text or a file, as they are or in Base64. */
  in(content: string | Buffer): readonly string[] {
    const bytes = typeof content === 'string' ? Buffer.from(content) : content;
    return [...new Set(this.#forms.flatMap(([name, form]) => (bytes.includes(form) ? [name] : [])))];
  }

  #watch(name: string, text: string): void {
    this.#forms.push([name, Buffer.from(text)]);
    // Wherever it begins in what is encoded: what its neighbours have a part in is left out.
    for (const shift of [0, 1, 2]) {
      const encoded = Buffer.from(`${'x'.repeat(shift)}${text}`)
        .toString('base64')
        .replaceAll('=', '');
      this.#forms.push([name, Buffer.from(encoded.slice(shift === 0 ? 0 : 4, -3))]);
    }
  }
}
