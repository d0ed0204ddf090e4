import { describeError, type Logger, type LogOnce } from '../lib/index.ts';

/** The log of this room: what fails every few seconds is one line, not thousands. */
export class NodeLog {
  readonly #logger: Logger;
  readonly #reported: LogOnce;

  constructor(logger: Logger, reported: LogOnce) {
    this.#logger = logger;
    this.#reported = reported;
  }

  info(message: string, fields?: Parameters<Logger['info']>[1]): void {
    this.#logger.info(message, fields);
  }

  warn(message: string, fields?: Parameters<Logger['warn']>[1]): void {
    this.#logger.warn(message, fields);
  }

  problem(what: string, error: unknown): void {
    const text = describeError(error);
    if (this.#reported.isNew(`node/${what}`, text))
      this.#logger.warn(`Cannot ${what}, will try again`, { err: text });
  }

  /** What came of it: trouble where there is an error. */
  outcome(what: string, error: unknown): void {
    if (error === undefined) this.recovered(what);
    else this.problem(what, error);
  }

  recovered(what: string): void {
    if (this.#reported.clear(`node/${what}`)) this.#logger.info(`Could ${what} again`);
  }
}
