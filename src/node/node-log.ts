import { describeError, type Logger } from '../lib/index.ts';

/** Remembers what is wrong, so that each trouble is told when it begins and when it changes. Bounded. */
export interface Troubles {
  /** Whether this is news. */
  begin(key: string, text: string): boolean;
  /** Whether there was any. */
  end(key: string): boolean;
}

/** The log of this room: what fails every few seconds is one line, not thousands. */
export class NodeLog {
  readonly #logger: Logger;
  readonly #troubles: Troubles;

  constructor(logger: Logger, troubles: Troubles) {
    this.#logger = logger;
    this.#troubles = troubles;
  }

  info(message: string, fields?: Parameters<Logger['info']>[1]): void {
    this.#logger.info(message, fields);
  }

  warn(message: string, fields?: Parameters<Logger['warn']>[1]): void {
    this.#logger.warn(message, fields);
  }

  trouble(what: string, error: unknown): void {
    const text = describeError(error);
    if (this.#troubles.begin(`node/${what}`, text))
      this.#logger.warn(`Cannot ${what}, will try again`, { err: text });
  }

  /** What came of it: trouble where there is an error. */
  outcome(what: string, error: unknown): void {
    if (error === undefined) this.mended(what);
    else this.trouble(what, error);
  }

  mended(what: string): void {
    if (this.#troubles.end(`node/${what}`)) this.#logger.info(`Could ${what} again`);
  }
}
