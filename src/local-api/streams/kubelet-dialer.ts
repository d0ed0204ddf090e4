import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type RequestOptions, request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type Clock, describeError } from '../../lib/index.ts';
import { type BackendResponse, sendWithConnectDeadline } from '../../protocols/upgrade/index.ts';
import { internalError, type StoredObject } from '../api/index.ts';

/** Where a kubelet answers. */
export interface KubeletAddress {
  /** A name or an address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Whom its certificate must be for, where that is not the host. */
  readonly identity?: string | undefined;
}

/** Who we are to kubelets, and whom we take for one. All in PEM. */
export interface KubeletCredentials {
  readonly cert: string;
  readonly key: string;
  /** Undefined to take anybody's certificate, as those of kubelets that sign their own. */
  readonly ca: string | undefined;
}

/** The way to the kubelets: given by whoever started them. */
export interface KubeletDialer {
  /** Undefined when the node does not say where. */
  locate(node: StoredObject): KubeletAddress | undefined;
  /** Asked for each time, as certificates are renewed. */
  credentials(): KubeletCredentials;
}

export interface KubeletRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Names and values in turn; `Host` is added. */
  readonly headers: readonly string[];
  /** Sent along, and closed when done. */
  readonly body?: IncomingMessage | undefined;
}

const connectWithinMs = 15_000;
const maxHeaderBytes = 1 << 20;

/** Where a node's kubelet is, by what the node says of itself. */
export function addressOf(node: StoredObject): KubeletAddress | undefined {
  const { addresses = [], daemonEndpoints } = (node.status ?? {}) as NodeEndpoints;
  const port = daemonEndpoints?.kubeletEndpoint?.Port;
  const address = ['InternalIP', 'Hostname', 'ExternalIP', 'InternalDNS', 'ExternalDNS']
    .map((type) => addresses.find((each) => each.type === type)?.address)
    .find((each) => each !== undefined);
  return address === undefined || port === undefined ? undefined : { host: address, port };
}

interface NodeEndpoints {
  readonly addresses?: readonly { readonly type: string; readonly address: string }[];
  readonly daemonEndpoints?: { readonly kubeletEndpoint?: { readonly Port?: number } };
}

/**
 * Asks over a connection of its own. Resolves with the head of the answer; its body, or the upgraded connection, is the
 * caller's. Rejects with a Status when nobody answers.
 */
export async function requestKubelet(
  place: KubeletAddress,
  door: Pick<KubeletDialer, 'credentials'>,
  request: KubeletRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<BackendResponse> {
  const { cert, key, ca } = door.credentials();
  const options = { ...wire(place, request), cert, key, ca, rejectUnauthorized: ca !== undefined };
  try {
    return await sendToBackend(tlsRequest(options), request, clock, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw internalError(`error dialing backend: ${describeError(error)}`);
  }
}

function wire({ host, port, identity = host }: KubeletAddress, request: KubeletRequest): RequestOptions {
  const { method, path, headers } = request;
  return {
    method,
    host,
    port,
    path,
    headers: [
      'Host',
      `${host.includes(':') ? `[${host}]` : host}:${port}`,
      ...headers,
    ] as unknown as OutgoingHttpHeaders,
    agent: false,
    servername: isIP(identity) === 0 ? identity : '',
    maxHeaderSize: maxHeaderBytes,
    // Either side may end its direction while the other still has things to say.
    ...{ allowHalfOpen: true },
  };
}

/** Sends the request; connecting has a deadline, the response has none. */
export function sendToBackend(
  request: ClientRequest,
  { body }: Pick<KubeletRequest, 'body'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<BackendResponse> {
  return sendWithConnectDeadline(request, body, { clock, ms: connectWithinMs }, signal);
}
