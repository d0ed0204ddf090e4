/**
 * The high-water marks in bytes and messages: above them the source is paused until the reader
 * catches up.
 */
const highWaterBytes = 256 << 10;
const highWaterMessages = 64;

/** The source of the messages, which can be paused. */
export interface PausableSource {
  pause(): void;
  resume(): void;
}

/**
 * Buffers the messages of a stream for its reader. Above the high-water mark the source is paused,
 * so that memory is bounded.
 */
export class MessageQueue {
  readonly #messages: Buffer[] = [];
  #bytes = 0;
  #paused: PausableSource | undefined;
  #over: { readonly error: unknown } | undefined;
  #wake: (() => void) | undefined;

  put(message: Buffer, source: PausableSource): void {
    this.#messages.push(message);
    this.#bytes += message.length;
    if (this.#paused === undefined && this.#isFull()) {
      source.pause();
      this.#paused = source;
    }
    this.#wake?.();
  }

  /** Marks the end of the messages; without an error the call succeeded. */
  end(error: unknown): void {
    this.#over ??= { error };
    this.#wake?.();
  }

  /**
   * The next message; undefined at the end. Throws the failure of the call after all messages were
   * read.
   */
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
