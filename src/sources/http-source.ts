import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { describeError, KubelingError, nodeHttp, onAbort, withDeadline } from '../lib/index.ts';
import type { Pod } from '../pods/index.ts';
import { namesAllPods, podsToRun } from './file-scan.ts';
import { type ManifestPod, ManifestReader, manifestLimit } from './manifest.ts';
import { type LastGoodManifests, noLastGoodManifests } from './manifest-checkpoints.ts';
import { type ClaimHolders, resolveClaims, StaticUids } from './manifest-claims.ts';
import type { ManifestSourceOptions } from './manifest-source.ts';
import { ProblemReporter, problemAt, type SourceProblem } from './problems.ts';

/**
 * Options of an HTTP source; `resyncMs` is the interval from the end of one request to the start of
 * the next.
 */
export interface HttpSourceOptions extends ManifestSourceOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly get: HttpGet;
}

const deadlineMs = 10_000;
/**
 * Number of consecutive failures that are logged; further ones are not logged until the URL
 * recovers.
 */
const loggedFailures = 3;

/**
 * Source of the static pods of a manifest URL. While the URL is unavailable, the pods of its last
 * response are kept.
 */
export class HttpSource {
  readonly #options: HttpSourceOptions;
  readonly #reader: ManifestReader;
  readonly #problems: ProblemReporter;
  readonly #uids: StaticUids;
  readonly #lastGood: LastGoodManifests;
  #digest: string | undefined;
  /** The pods of the last valid response; undefined before the first response or checkpoint. */
  #pods: readonly ManifestPod[] | undefined;
  #holders: ClaimHolders = new Map();
  #sent: readonly Pod[] | undefined;
  /** Problems of the last body, which persist while the body is unchanged. */
  #bodyProblems: readonly SourceProblem[] = [];
  /** Valid content that is not saved as a checkpoint; undefined when all is saved. */
  #uncheckpointed: Uint8Array | undefined;
  #failures = 0;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    this.#reader = new ManifestReader(options.rules);
    this.#problems = new ProblemReporter(options.onProblem, options.onResolved);
    this.#uids = options.uids ?? new StaticUids();
    this.#lastGood = options.lastGood ?? noLastGoodManifests;
  }

  problems(): readonly SourceProblem[] {
    return this.#problems.current;
  }

  /** Runs the source; resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#restore();
      while (!signal.aborted) {
        await this.#poll(signal);
        await this.#options.clock.sleep(this.#options.resyncMs, signal);
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /** Restores the pods of the last valid response, which a previous kubelet process saved. */
  async #restore(): Promise<void> {
    const { url, nodeName } = this.#options;
    const bytes = await this.#lastGood.read(url);
    if (bytes === undefined) return;
    this.#pods = (await this.#reader.read(bytes, { source: 'http', path: url, nodeName })).pods;
  }

  async #poll(signal: AbortSignal): Promise<void> {
    let failures: readonly SourceProblem[] = [];
    try {
      const body = await this.#fetch(signal);
      this.#reportSuccess();
      await this.#apply(body);
    } catch (error) {
      signal.throwIfAborted();
      failures = [this.#reportFailure(error)];
    }
    const repeated = this.#pods === undefined ? [] : await this.#resolve(this.#pods);
    this.#problems.replace([...this.#bodyProblems, ...repeated, ...failures]);
  }

  async #fetch(signal: AbortSignal): Promise<Uint8Array> {
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

  async #apply(body: Uint8Array): Promise<void> {
    const digest = createHash('sha256').update(body).digest('hex');
    if (digest === this.#digest) return;
    const { url, nodeName } = this.#options;
    const path = withoutSecrets(url);
    const reading = await this.#reader.read(body, { source: 'http', path: url, nodeName });
    // An empty body removes all pods; it is reported as a problem, because it is rarely intended.
    this.#pods = body.byteLength === 0 ? [] : podsToRun(reading, this.#pods ?? []);
    this.#bodyProblems = reading.problems.map((problem) => ({ ...problem, path }));
    this.#uncheckpointed = namesAllPods(reading, this.#pods) ? body : undefined;
    this.#digest = digest;
  }

  /**
   * Resolves duplicate names and UIDs in each poll, because another source may have released a UID.
   */
  async #resolve(pods: readonly ManifestPod[]): Promise<readonly SourceProblem[]> {
    const path = withoutSecrets(this.#options.url);
    const claimants = pods.map((pod) => ({ ...pod, path }));
    const resolved = resolveClaims(claimants, this.#holders, 'http', this.#uids);
    this.#holders = resolved.holders;
    // The pods are delivered before the checkpoint is saved, because they need not wait for the
    // disk.
    this.#send(resolved.pods);
    await this.#checkpoint(pods);
    return resolved.problems;
  }

  #send(pods: readonly Pod[]): void {
    const before = this.#sent;
    if (before?.length === pods.length && pods.every((pod, index) => pod === before[index])) return;
    this.#options.setPods(pods);
    this.#sent = pods;
  }

  async #checkpoint(pods: readonly ManifestPod[]): Promise<void> {
    const { url } = this.#options;
    const text = this.#uncheckpointed;
    this.#uncheckpointed = undefined;
    if (text !== undefined) await this.#lastGood.save(url, text);
    await this.#lastGood.retain(pods.length === 0 ? [] : [url]);
  }

  #reportFailure(error: unknown): SourceProblem {
    const path = withoutSecrets(this.#options.url);
    if (++this.#failures <= loggedFailures)
      this.#options.logger.error('Failed to read manifest URL, keeping its pods', error, {
        url: path,
      });
    const message = `cannot be read: ${describeError(error)}`;
    return problemAt({ source: 'http', path }, { message });
  }

  #reportSuccess(): void {
    if (this.#failures > 0)
      this.#options.logger.info('Manifest URL can be read again', {
        url: withoutSecrets(this.#options.url),
        failures: this.#failures,
      });
    this.#failures = 0;
  }
}

/**
 * Removes credentials from a URL, because a password or a token must not appear in logs and events.
 */
function withoutSecrets(url: string): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  shown.search = '';
  return shown.href;
}

export interface ManifestResponse {
  readonly status: number;
  readonly body: Uint8Array;
}

/**
 * Sends a GET request. Rejects when there is no response or it is too large; any status is a
 * response.
 */
export type HttpGet = (
  url: string,
  headers: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
) => Promise<ManifestResponse>;

const mostRedirects = 10;

/**
 * Follows redirects. The headers may contain credentials, so they are sent only to the origin of
 * the URL; after a redirect to another origin, all further requests are sent without them.
 */
export const httpGet: HttpGet = async (url, headers, signal) => {
  const { origin } = new URL(url);
  let at = new URL(url);
  let sent = headers;
  for (let hops = 0; hops <= mostRedirects; hops++) {
    if (at.origin !== origin) sent = {};
    const response = await getOnce(at, sent, signal);
    if (response.location === undefined) return response;
    at = new URL(response.location, at);
  }
  throw new Error(`more than ${mostRedirects} redirects`);
};

type RedirectableResponse = ManifestResponse & { readonly location: string | undefined };

function getOnce(
  url: URL,
  headers: Readonly<Record<string, readonly string[]>>,
  signal: AbortSignal,
): Promise<RedirectableResponse> {
  return new Promise<RedirectableResponse>((resolve, reject) => {
    const request = url.protocol === 'https:' ? httpsRequest : nodeHttp.request;
    const sent = Object.fromEntries(Object.entries(headers).map(([name, values]) => [name, [...values]]));
    const outgoing = request(url, { method: 'GET', headers: sent, agent: false });
    const abort = onAbort(signal, (reason) => outgoing.destroy(reason as Error));
    outgoing.on('error', (error) => {
      abort[Symbol.dispose]();
      reject(error);
    });
    outgoing.on('response', (response) => {
      readResponse(response)
        .then(resolve, (error) => {
          outgoing.destroy();
          reject(error);
        })
        .finally(() => abort[Symbol.dispose]());
    });
    outgoing.end();
  });
}

async function readResponse(response: IncomingMessage): Promise<RedirectableResponse> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size >= manifestLimit) throw new Error(`the response must be smaller than ${manifestLimit} bytes`);
    chunks.push(chunk);
  }
  const status = response.statusCode ?? 0;
  const moved = [301, 302, 303, 307, 308].includes(status);
  return { status, body: Buffer.concat(chunks), location: moved ? response.headers.location : undefined };
}
