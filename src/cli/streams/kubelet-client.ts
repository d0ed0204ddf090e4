import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { type Clock, describeError, KubelingError, nodeHttp, withDeadline } from '../../lib/index.ts';
import type { Pod } from '../../pods/index.ts';
import { SpdyConnection } from '../../protocols/spdy/index.ts';
import { spdyUpgradeHeaders, type UpgradeResponse, upgradeDialer } from '../../server/index.ts';
import type { CommandContext } from '../command.ts';
import { tokenFile } from '../data-directory/data-directory.ts';
import {
  bearerOf,
  checkListener,
  getText,
  type KubeletAddress,
  type LocalKubelet,
  locateKubelet,
} from '../kubelet-port.ts';

/** The methods of the kubelet API that commands use. */
export interface KubeletClient {
  pods(signal: AbortSignal): Promise<readonly Pod[]>;
  /** Opens a stream; rejects with STREAM_REFUSED and the kubelet's message when it is denied. */
  open(path: string, protocol: string, signal: AbortSignal): Promise<SpdyConnection>;
  /** Requests a path; resolves with the response headers, whatever the status. */
  read(path: string, signal: AbortSignal): Promise<IncomingMessage>;
}

const responseTimeoutMs = 10_000;

/**
 * Locates the kubelet; called for each request, because a restarted kubelet may have another port
 * and token.
 */
export async function findKubelet(
  address: KubeletAddress,
  { clock }: CommandContext,
): Promise<KubeletClient> {
  const dial = upgradeDialer(clock);
  return {
    async pods(signal) {
      const kubelet = await locateKubelet(address);
      const { port } = kubelet;
      const headers = await bearerOf(kubelet);
      const url = `http://127.0.0.1:${port}/pods`;
      const get = async (inner: AbortSignal) => podsOf(await getText(url, headers, inner));
      const limit = { clock, ms: responseTimeoutMs, what: 'get a response from the kubelet' };
      return await asking(port, signal, () => withDeadline(limit, get, signal));
    },
    async open(path, protocol, signal) {
      const kubelet = await locateKubelet(address);
      const { port } = kubelet;
      const headers = [
        ...spdyUpgradeHeaders(protocol),
        'Authorization',
        `Bearer ${await readToken(kubelet)}`,
      ];
      const target = { url: new URL(path, `http://127.0.0.1:${port}`), method: 'POST', headers };
      return connectionOf(await asking(port, signal, () => dial(target, signal)));
    },
    async read(path, signal) {
      const kubelet = await locateKubelet(address);
      const { port } = kubelet;
      const headers = { authorization: `Bearer ${await readToken(kubelet)}` };
      const url = `http://127.0.0.1:${port}${path}`;
      return await asking(port, signal, () => beginGet(url, headers, clock, signal));
    },
  };
}

function connectionOf(response: UpgradeResponse): SpdyConnection {
  if (response.kind === 'upgraded') return new SpdyConnection(response.socket, response.head);
  const { status, body } = response;
  throw new KubelingError(
    'STREAM_REFUSED',
    `The kubelet denied the request: ${body.trim() || `status ${status}`}`,
  );
}

async function readToken({ port, rootDir }: LocalKubelet): Promise<string> {
  await checkListener(port);
  const path = tokenFile(rootDir);
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (cause) {
    const message = `Cannot read the kubelet's token ${path}: ${describeError(cause)}. Is the kubelet running, and are you root?`;
    throw new KubelingError('KUBELET_SILENT', message, { cause });
  }
}

async function asking<T>(port: number, signal: AbortSignal, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (cause) {
    signal.throwIfAborted();
    const message = `Cannot reach the kubelet at 127.0.0.1:${port}: ${describeError(cause)}. Is it running?`;
    throw new KubelingError('KUBELET_SILENT', message, { cause });
  }
}

/** Parses the response; it may be from any program that listens on the port. */
function podsOf(body: string): readonly Pod[] {
  try {
    return JSON.parse(body).items ?? [];
  } catch (cause) {
    throw new KubelingError(
      'KUBELET_SILENT',
      'Cannot read the response: the program that listens on the kubelet port is not a kubelet',
      { cause },
    );
  }
}

/** Sends a GET request over a separate connection, which is closed when the signal aborts. */
function beginGet(
  url: string,
  headers: Readonly<Record<string, string>>,
  clock: Clock,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const call = nodeHttp.request(url, { headers, signal, agent: false }, (response) => {
      timer.cancel();
      resolve(response);
    });
    const timer = clock.timer(responseTimeoutMs, () => call.destroy(tooLate()));
    call.on('error', (error) => {
      timer.cancel();
      reject(error);
    });
    call.end();
  });
}

function tooLate(): KubelingError {
  return new KubelingError(
    'DEADLINE_EXCEEDED',
    `Cannot get a response from the kubelet within ${responseTimeoutMs} ms`,
  );
}
