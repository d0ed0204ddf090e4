import type { Logger } from '../../lib/index.ts';

/** The file a manager keeps its state in. */
export interface StateFile {
  /** Undefined when there is none. */
  read(): Promise<string | undefined>;
  /** As a whole or not at all. */
  write(text: string): Promise<void>;
}

/** Keeps the file as new as the state: one write at a time, and of several states that wait only the newest. */
export class StateKeeper {
  readonly #file: StateFile;
  readonly #logger: Logger;
  readonly #textOf: () => string;
  #writing: Promise<void> | undefined;
  #written: string | undefined;

  constructor(file: StateFile, logger: Logger, textOf: () => string) {
    this.#file = file;
    this.#logger = logger;
    this.#textOf = textOf;
  }

  /** Settles when what the state is now is on the disk. What cannot be written is told and tried again the next time. */
  async save(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
    const text = this.#textOf();
    if (text === this.#written) return;
    this.#writing = this.#write(text).finally(() => {
      this.#writing = undefined;
    });
    await this.#writing;
  }

  async #write(text: string): Promise<void> {
    try {
      await this.#file.write(text);
      this.#written = text;
    } catch (error) {
      this.#logger.error('Cannot note what containers were given for themselves', error);
    }
  }
}
