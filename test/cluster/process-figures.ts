import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { patiently } from './patiently.ts';

/** The resource usage of a Node.js process. */
export interface ProcessFigures {
  readonly descriptors: number;
  readonly sockets: number;
  /** The number of active timers. */
  readonly timers: number;
  readonly abortSignals: number;
  readonly promises: number;
  /** The size of live objects. */
  readonly heapBytes: number;
  readonly residentBytes: number;
}

/** The fields of the inspector's responses that are used here. */
interface Answer {
  readonly result: {
    readonly result?: { readonly value?: unknown; readonly objectId?: string };
    readonly objects?: { readonly objectId?: string };
    readonly exceptionDetails?: unknown;
  };
  readonly error?: { readonly message: string };
}

const answerWithinMs = 60_000;

/**
 * Inspects a Node.js process through its inspector, which a signal opens. The process should run
 * with `NODE_OPTIONS=--inspect-port=0`, so that it uses a free port.
 */
export class ProcessInsight implements Disposable {
  readonly #pid: number;
  readonly #socket: WebSocket;
  #asked = 0;

  /**
   * Opens the inspector; `out` returns the output of the process so far, which contains the URL.
   */
  static async open(pid: number, out: () => string): Promise<ProcessInsight> {
    const said = out().length;
    process.kill(pid, 'SIGUSR1');
    const url = await patiently(
      'the inspector to listen',
      async () => /ws:\/\/\S+/.exec(out().slice(said))?.[0],
    );
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.addEventListener('open', resolve, { once: true });
      socket.addEventListener('error', () => reject(new Error(`Cannot reach the inspector at ${url}`)), {
        once: true,
      });
    });
    return new ProcessInsight(pid, socket);
  }

  private constructor(pid: number, socket: WebSocket) {
    this.#pid = pid;
    this.#socket = socket;
  }

  async figures(): Promise<ProcessFigures> {
    const abortSignals = await this.#count('AbortSignal');
    const promises = await this.#count('Promise');
    for (let times = 0; times < 2; times++) await this.#ask('HeapProfiler.collectGarbage', {});
    const timers = 'process.getActiveResourcesInfo().filter((name) => name === "Timeout").length';
    const links = await descriptorsOf(this.#pid);
    return {
      descriptors: links.length,
      sockets: links.filter((link) => link.startsWith('socket:')).length,
      timers: Number(await this.#evaluate(timers)),
      abortSignals,
      promises,
      heapBytes: Number(await this.#evaluate('process.memoryUsage().heapUsed')),
      residentBytes: await residentBytes(this.#pid),
    };
  }

  [Symbol.dispose](): void {
    this.#socket.close();
  }

  /** Counts the live objects of a class, including those of derived classes. */
  async #count(className: string): Promise<number> {
    const objectGroup = 'counting';
    const expression = `${className}.prototype`;
    const { result } = await this.#ask('Runtime.evaluate', { expression, objectGroup });
    const found = await this.#ask('Runtime.queryObjects', {
      prototypeObjectId: result?.objectId,
      objectGroup,
    });
    const length = { functionDeclaration: 'function () { return this.length; }', returnByValue: true };
    const counted = await this.#ask('Runtime.callFunctionOn', {
      ...length,
      objectId: found.objects?.objectId,
    });
    await this.#ask('Runtime.releaseObjectGroup', { objectGroup });
    return Number(counted.result?.value);
  }

  async #evaluate(expression: string): Promise<unknown> {
    const { result } = await this.#ask('Runtime.evaluate', { expression, returnByValue: true });
    return result?.value;
  }

  async #ask(method: string, params: object): Promise<Answer['result']> {
    const id = ++this.#asked;
    const limit = AbortSignal.timeout(answerWithinMs);
    const responded = new Promise<Answer>((resolve, reject) => {
      limit.addEventListener('abort', () => reject(new Error(`Timeout of the inspector call ${method}`)));
      this.#socket.addEventListener('message', function hear({ data, target }) {
        const response = JSON.parse(String(data));
        if (response.id !== id) return;
        target?.removeEventListener('message', hear as (event: Event) => void);
        resolve(response);
      });
    });
    this.#socket.send(JSON.stringify({ id, method, params }));
    const { result, error } = await responded;
    if (error !== undefined) throw new Error(`The inspector call ${method} failed: ${error.message}`);
    return result;
  }
}

async function descriptorsOf(pid: number): Promise<readonly string[]> {
  const dir = `/proc/${pid}/fd`;
  const links = await Promise.all(
    (await readdir(dir)).map((name) => readlink(join(dir, name)).catch(() => undefined)),
  );
  return links.filter((link) => link !== undefined);
}

async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1_024;
}
