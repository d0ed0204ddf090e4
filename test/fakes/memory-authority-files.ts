import type { CredentialFiles } from '../../src/local-api/security/index.ts';

/** Files of a machine that exists only in memory. */
export class MemoryCredentialFiles implements CredentialFiles {
  readonly #texts = new Map<string, { readonly text: string; readonly mode: number }>();

  async openDirectory(): Promise<void> {}

  async read(path: string): Promise<string | undefined> {
    return this.#texts.get(path)?.text;
  }

  async replace(path: string, text: string, mode: number): Promise<void> {
    this.#texts.set(path, { text, mode });
  }

  remove(path: string): void {
    this.#texts.delete(path);
  }

  modeOf(path: string): number | undefined {
    return this.#texts.get(path)?.mode;
  }

  /** Returns the paths of all files, sorted. */
  paths(): string[] {
    return [...this.#texts.keys()].sort();
  }
}
