import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { type RequestOptions, request as tlsRequest } from 'node:https';
import { isIP } from 'node:net';
import { type Clock, describeError } from '../../lib/index.ts';
import { type BackendResponse, sendWithConnectDeadline } from '../../protocols/upgrade/index.ts';
import { internalError, type StoredObject } from '../api/index.ts';

/** The network address of a kubelet. */
export interface KubeletEndpoint {
  /** The host name or IP address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** The server name in the kubelet certificate, if it differs from the host. */
  readonly identity?: string | undefined;
}

/** The client certificate for requests to kubelets and the CA of their certificates, as PEM. */
export interface KubeletCredentials {
  readonly cert: string;
  readonly key: string;
  /** The CA; undefined to skip verification, for self-signed kubelet certificates. */
  readonly ca: string | undefined;
}

/** Access to the kubelets, provided by the process that runs them. */
export interface KubeletDialer {
  /** The endpoint of the node's kubelet; undefined if the node does not report it. */
  locate(node: StoredObject): KubeletEndpoint | undefined;
  /** The current credentials; requested for each connection, because certificates are renewed. */
  credentials(): KubeletCredentials;
}

export interface KubeletRequest {
  readonly method: string;
  /** The path of the request, including the query. */
  readonly path: string;
  /** The headers as alternating names and values; `Host` is added. */
  readonly headers: readonly string[];
  /** The request body. */
  readonly body?: IncomingMessage | undefined;
}

const connectWithinMs = 15_000;
const maxHeaderBytes = 1 << 20;

/** The kubelet endpoint from the addresses and the port in the node status. */
export function addressOf(node: StoredObject): KubeletEndpoint | undefined {
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
 * Sends a request over a separate connection. Resolves with the response head; the caller owns the
 * body or the upgraded connection. Rejects with a StatusError if the kubelet is not reachable.
 */
export async function requestKubelet(
  address: KubeletEndpoint,
  dialer: Pick<KubeletDialer, 'credentials'>,
  request: KubeletRequest,
  clock: Clock,
  signal: AbortSignal,
): Promise<BackendResponse> {
  const { cert, key, ca } = dialer.credentials();
  const options = { ...wire(address, request), cert, key, ca, rejectUnauthorized: ca !== undefined };
  try {
    return await sendToBackend(tlsRequest(options), request, clock, signal);
  } catch (error) {
    signal.throwIfAborted();
    throw internalError(`error dialing backend: ${describeError(error)}`);
  }
}

function wire({ host, port, identity = host }: KubeletEndpoint, request: KubeletRequest): RequestOptions {
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
    // Client and kubelet may each close their direction of the stream separately.
    ...{ allowHalfOpen: true },
  };
}

/** Sends the request. Connecting has a deadline, the response has none. */
export function sendToBackend(
  request: ClientRequest,
  { body }: Pick<KubeletRequest, 'body'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<BackendResponse> {
  return sendWithConnectDeadline(request, body, { clock, ms: connectWithinMs }, signal);
}
