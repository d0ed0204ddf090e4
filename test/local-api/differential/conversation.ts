import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { patiently } from '../../cluster/patiently.ts';
import { ComparableResponses } from './comparable-responses.ts';
import type { Server } from './server.ts';
import type { Chapter, OpenWatchStep, ReadEventsStep, RequestStep, Step } from './step.ts';
import { WatchEvents } from './watch-events.ts';

export interface RecordedStep {
  readonly what: string;
  readonly code?: number;
  /** The content type of the response. */
  readonly type?: string;
  readonly warnings?: readonly string[];
  readonly retryAfter?: string;
  readonly body?: unknown;
  readonly events?: readonly unknown[];
}

const answerWithinMs = 60_000;

/** Sends the requests of a chapter, one per step, to a server and records the responses. */
export class Conversation implements Disposable {
  readonly #server: Server;
  readonly #namespace: string;
  readonly #comparable = new ComparableResponses();
  readonly #saved = new Map<string, unknown>();
  readonly #agents = new Map<string, Agent>();
  readonly #watches = new Map<string, WatchEvents>();

  constructor(server: Server, namespace: string) {
    this.#server = server;
    this.#namespace = namespace;
  }

  static async runAll(server: Server, chapter: Chapter): Promise<readonly RecordedStep[]> {
    using conversation = new Conversation(server, chapter.name);
    await conversation.begin();
    const reported: RecordedStep[] = [];
    for (const step of chapter.steps) reported.push(await conversation.run(step));
    return reported;
  }

  /**
   * Creates the namespace of the chapter and waits until the objects that every namespace gets
   * exist.
   */
  async begin(): Promise<void> {
    const metadata = { name: this.#namespace };
    const make = { method: 'POST', path: '/api/v1/namespaces', body: { metadata } };
    const { code, body } = await this.#send({ ...plain, ...make });
    if (code !== 201) throw new Error(`Cannot create namespace ${this.#namespace}: ${code} ${body}`);
    for (const part of ['serviceaccounts/default', 'configmaps/kube-root-ca.crt'])
      await patiently(part, async () => {
        const path = `/api/v1/namespaces/${this.#namespace}/${part}`;
        const found = await this.#send({ ...plain, method: 'GET', path });
        return found.code === 200 ? found : undefined;
      });
  }

  async run(step: Step): Promise<RecordedStep> {
    switch (step.kind) {
      case 'ask':
        return await this.#request(step);
      case 'watch':
        return await this.#watch(step);
      case 'hear':
        return await this.#readEvents(step);
      case 'forget':
        await this.#server.dropHistory();
        return { what: step.what };
    }
  }

  [Symbol.dispose](): void {
    for (const ear of this.#watches.values()) ear.close();
    for (const agent of this.#agents.values()) agent.destroy();
  }

  async #request(step: RequestStep): Promise<RecordedStep> {
    const { generateName } = (step.body as Body | undefined)?.metadata ?? {};
    if (generateName !== undefined) this.#comparable.ignoreSuffixOf(generateName);
    const once = async () => {
      const response = await this.#send(step);
      return { ...response, parsed: parsed(response.body) };
    };
    const { until } = step;
    const response =
      until === undefined
        ? await once()
        : await patiently(step.what, async () => {
            const one = await once();
            return until({ code: one.code, body: one.parsed }) ? one : undefined;
          });
    if (step.keep !== undefined) this.#saved.set(step.keep, response.parsed);
    return this.#recorded(step, response);
  }

  #recorded(
    step: RequestStep | OpenWatchStep,
    { code, headers, parsed: body }: Response & { readonly parsed: unknown },
  ): RecordedStep {
    const warnings = headers['warning']?.split(/, (?=299)/) ?? [];
    const { 'content-type': type, 'retry-after': retryAfter } = headers;
    const steady = this.#comparable.of(body);
    return {
      what: step.what,
      code,
      ...(type === undefined ? {} : { type }),
      ...(warnings.length === 0
        ? {}
        : { warnings: warnings.map((each) => String(this.#comparable.of(each))) }),
      ...(retryAfter === undefined ? {} : { retryAfter }),
      body: step.compare === undefined ? steady : asJson(step.compare(steady)),
    };
  }

  async #watch(step: OpenWatchStep): Promise<RecordedStep> {
    const response = await this.#open(step);
    const { statusCode: code = 0, headers } = response;
    if (code !== 200) {
      const body = await text(response);
      return this.#recorded(step, { code, headers: plainHeaders(headers), body, parsed: parsed(body) });
    }
    this.#watches.set(step.name, new WatchEvents(response));
    const { 'content-type': type = '' } = headers;
    return { what: step.what, code, type };
  }

  async #readEvents({ what, watch, events, keep }: ReadEventsStep): Promise<RecordedStep> {
    const ear = this.#watches.get(watch);
    if (ear === undefined) throw new Error(`Cannot read watch ${watch}: the server rejected it`);
    const heard = await ear.next(events, answerWithinMs);
    if (keep !== undefined) this.#saved.set(keep, heard.at(-1));
    return { what, events: heard.map((each) => this.#comparable.of(each)) };
  }

  async #send(step: SentRequest): Promise<Response> {
    const response = await this.#open(step);
    const body = await text(response);
    return { code: response.statusCode ?? 0, headers: plainHeaders(response.headers), body };
  }

  #open(step: SentRequest): Promise<IncomingMessage> {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const content = this.#content(step);
    // Node.js sets the content length itself only for some HTTP methods.
    const type =
      content === undefined ? {} : { 'content-type': 'application/json', 'content-length': content.length };
    const call = request(`${this.#server.url}${this.#filled(step.path)}`, {
      method: step.method,
      agent: this.#agent(step),
      timeout: answerWithinMs,
      headers: { accept: 'application/json', ...type, ...this.#bearer(step), ...step.headers },
    });
    call.on('response', resolve).on('error', reject);
    call.on('timeout', () => call.destroy(new Error(`${step.method} ${step.path} timed out`)));
    call.end(content);
    return promise;
  }

  #content({ body, raw }: SentRequest): Buffer | undefined {
    if (raw !== undefined)
      return 'text' in raw ? Buffer.from(this.#filled(raw.text)) : Buffer.from(raw.base64, 'base64');
    return body === undefined ? undefined : Buffer.from(this.#filled(JSON.stringify(body)));
  }

  #bearer({ as }: SentRequest): Readonly<Record<string, string>> {
    return typeof as === 'string' ? {} : { authorization: `Bearer ${this.#filled(as.token)}` };
  }

  /** One kept-alive connection per user; a watch occupies a separate connection. */
  #agent({ as }: SentRequest): Agent {
    const who = typeof as === 'string' ? as : 'nobody';
    const known = this.#agents.get(who);
    if (known !== undefined) return known;
    const { cert, key } = this.#server.identity(who);
    const pair = cert === undefined || key === undefined ? {} : { cert, key };
    const agent = new Agent({ keepAlive: true, ca: this.#server.ca, ...pair });
    this.#agents.set(who, agent);
    return agent;
  }

  #filled(template: string): string {
    return template.replaceAll(/<([a-z]\w*(?:\.[^<>]+)?)>/g, (whole, path: string) => {
      if (path === 'ns') return this.#namespace;
      const [name = '', ...steps] = path.split('.');
      if (!this.#saved.has(name)) return whole;
      const found = steps.reduce<unknown>(
        (value, step) => (value as Readonly<Record<string, unknown>> | undefined)?.[step],
        this.#saved.get(name),
      );
      return String(found);
    });
  }
}

type SentRequest = Pick<RequestStep, 'method' | 'path' | 'as' | 'headers'> &
  Partial<Pick<RequestStep, 'body' | 'raw'>>;

interface Body {
  readonly metadata?: { readonly generateName?: string };
}

const plain = { as: 'admin', headers: {} } as const;

interface Response {
  readonly code: number;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

function plainHeaders(headers: IncomingMessage['headers']): Response['headers'] {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]),
  );
}

/** Converts a value as writing it to the recording and reading it back does. */
function asJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}

/** Parses a JSON body; returns other text unchanged. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
