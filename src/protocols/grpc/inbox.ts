/** Past this many bytes, or this many messages, no more is taken from the wire until the reader catches up. */
const highWaterBytes = 256 << 10;
const highWaterMessages = 64;

/** What the messages come from. */
export interface Source {
  pause(): void;
  resume(): void;
}

/** Answers waiting for the reader of a stream. Past the mark their source is paused, so it stays small. */
export class Inbox {
  readonly #messages: Buffer[] = [];
  #bytes = 0;
  #paused: Source | undefined;
  #over: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  put(message: Buffer, source: Source): void {
    this.#messages.push(message);
    this.#bytes += message.length;
    if (this.#paused === undefined && this.#isFull()) {
      source.pause();
      this.#paused = source;
    }
    this.#wake?.();
  }

  /** Nothing comes any more: all was well if there is no error. */
  end(error: unknown): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  /** The next answer, or undefined at the end; throws how the call failed once all answers were taken. */
  async take(): Promise<Buffer | undefined> {
    while (this.#messages.length === 0) {
      if (this.#over?.error !== undefined) throw this.#over.error;
      if (this.#over !== undefined) return undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
    const message = this.#messages.shift();
    this.#bytes -= message?.length ?? 0;
    if (!this.#isFull()) {
      this.#paused?.resume();
      this.#paused = undefined;
    }
    return message;
  }

  #isFull(): boolean {
    return this.#bytes >= highWaterBytes || this.#messages.length >= highWaterMessages;
  }
}
