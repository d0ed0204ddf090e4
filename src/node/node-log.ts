import { describeError, type Logger, type LogOnce } from '../lib/index.ts';

/** Logs each repeated failure of the node package once. */
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
      this.#logger.warn(`Cannot ${what}, retrying`, { err: text });
  }

  /** Records the outcome of an operation: a failure if there is an error, otherwise a recovery. */
  outcome(what: string, error: unknown): void {
    if (error === undefined) this.recovered(what);
    else this.problem(what, error);
  }

  recovered(what: string): void {
    if (this.#reported.clear(`node/${what}`)) this.#logger.info(`Recovered: ${what}`);
  }
}
