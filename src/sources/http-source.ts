import { createHash } from 'node:crypto';
import { type Clock, describeError, KubelingError, type Logger, withDeadline } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import { type Holders, settleClaims } from './claims.ts';
import { keepPods } from './file-scan.ts';
import type { HttpGet } from './http-fetch.ts';
import { type ManifestPod, ManifestReader } from './manifest.ts';
import { ProblemBoard, problemAt, type SourceProblem } from './problems.ts';
import type { PodRules } from './rules.ts';

export interface HttpSourceOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly nodeName: string;
  readonly rules: PodRules;
  readonly get: HttpGet;
  readonly clock: Clock;
  readonly logger: Logger;
  /** How long to wait between the end of one question and the next. */
  readonly checkMs: number;
  readonly setPods: (pods: readonly Pod[], signal: AbortSignal) => Promise<void>;
  readonly onProblem: (problem: SourceProblem) => void;
}

const deadlineMs = 10_000;
/** So many failures in a row are told, then no more until it works again. */
const failuresTold = 3;

/** The pods of a manifest behind a URL. While there is no answer, the pods of the last one stay. */
export class HttpSource {
  readonly #options: HttpSourceOptions;
  readonly #reader: ManifestReader;
  readonly #board: ProblemBoard;
  #digest: string | undefined;
  #pods: readonly ManifestPod[] = [];
  #holders: Holders = new Map();
  /** What is wrong with the last body; it stays wrong while the body stays the same. */
  #bodyProblems: readonly SourceProblem[] = [];
  #failures = 0;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    this.#reader = new ManifestReader(options.rules);
    this.#board = new ProblemBoard(options.onProblem);
  }

  problems(): readonly SourceProblem[] {
    return this.#board.current;
  }

  /** Asks until the signal ends it; returns then. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      while (!signal.aborted) {
        await this.#turn(signal);
        await this.#options.clock.sleep(this.#options.checkMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  async #turn(signal: AbortSignal): Promise<void> {
    let body: Uint8Array;
    try {
      body = await this.#ask(signal);
    } catch (error) {
      signal.throwIfAborted();
      this.#failed(error);
      return;
    }
    this.#succeeded();
    await this.#take(body, signal);
    this.#board.replace(this.#bodyProblems);
  }

  async #ask(signal: AbortSignal): Promise<Uint8Array> {
    const { get, url, headers, clock } = this.#options;
    const what = `get ${withoutSecrets(url)}`;
    const { status, body } = await withDeadline(
      { clock, ms: deadlineMs, what },
      (inner) => get(url, headers, inner),
      signal,
    );
    if (status === 200) return body;
    throw new KubelingError(
      'SOURCE_HTTP',
      `Cannot ${what} as the status must be 200: current value is ${status}`,
    );
  }

  async #take(body: Uint8Array, signal: AbortSignal): Promise<void> {
    const digest = createHash('sha256').update(body).digest('hex');
    if (digest === this.#digest) return;
    const { url, nodeName } = this.#options;
    const path = withoutSecrets(url);
    const reading = await this.#reader.read(body, { source: 'http', path: url, nodeName });
    // Nothing at all is an answer too: there shall be no pods. It is so rarely meant that it is told as a mistake.
    this.#pods = body.byteLength === 0 ? [] : keepPods(reading, this.#pods);
    const claimants = this.#pods.map((pod) => ({ ...pod, path }));
    const settled = settleClaims(claimants, this.#holders, 'http');
    this.#holders = settled.holders;
    this.#bodyProblems = [...reading.problems, ...settled.problems].map((problem) => ({ ...problem, path }));
    await this.#options.setPods(settled.pods, signal);
    this.#digest = digest;
  }

  #failed(error: unknown): void {
    const path = withoutSecrets(this.#options.url);
    if (++this.#failures <= failuresTold)
      this.#options.logger.error('The manifest URL does not answer; its pods stay as they are', error, {
        url: path,
      });
    const problem = problemAt(
      { source: 'http', path },
      { message: `cannot be read: ${describeError(error)}` },
    );
    this.#board.replace([...this.#bodyProblems, problem]);
  }

  #succeeded(): void {
    if (this.#failures > 0)
      this.#options.logger.info('The manifest URL answers again', {
        url: withoutSecrets(this.#options.url),
        failures: this.#failures,
      });
    this.#failures = 0;
  }
}

/** A URL may carry a password or a token, which are nobody's business in logs and events. */
function withoutSecrets(url: string): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  shown.search = '';
  return shown.href;
}
