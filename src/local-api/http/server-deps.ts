import type { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { KindTable } from '../../kinds/index.ts';
import type { Clock, Logger, Random } from '../../lib/index.ts';
import type { ConnectionQuota } from '../../protocols/http1/index.ts';
import type { AccessAttributes, ApiCall, ApiUser, ResourceEntry } from '../api/index.ts';
import type { ApiResponse, ServedWatchEvent } from '../api/responses.ts';

/** The dependencies of the HTTP layer. */
export interface ApiServerDeps {
  readonly api: ApiBackend;
  readonly catalogue: ResourceLookup;
  readonly table: KindTable;
  readonly security: RequestSecurity;
  readonly documents: PublishedDocuments;
  /** The proxy for streaming subresources; without it they return 404. */
  readonly streams?: StreamProxy | undefined;
  /** The checks of `/readyz` by name; a failed check returns its reason. */
  readonly checks?: Readonly<Record<string, () => string | undefined>> | undefined;
  /** Further documents by path, such as `/metrics`; served after authorization. */
  readonly extraDocuments?:
    | Readonly<Record<string, () => PlainResponse | Promise<PlainResponse>>>
    | undefined;
  /** The maximum number of in-flight requests without watches and streams; 600 by default. */
  readonly maxInFlight?: number | undefined;
  /**
   * The maximum number of connections; by default 512 of unauthenticated and 1,024 of unprivileged
   * clients.
   */
  readonly connections?: Partial<ConnectionQuota> | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** Executes API calls. Errors are thrown as StatusErrors. */
export interface ApiBackend {
  handle(call: ApiCall, signal: AbortSignal): Promise<ApiResponse>;
  /**
   * Starts a watch, which ends after its timeout. Throws if it cannot start or if its reader is too
   * slow.
   */
  watch(call: ApiCall, signal: AbortSignal): AsyncIterable<ServedWatchEvent>;
}

export interface ResourceLookup {
  find(group: string, version: string, plural: string): ResourceEntry | undefined;
}

/** The credentials and the address of a client before authentication. */
export interface ClientInfo {
  readonly certificate: VerifiedClientCertificate | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly address: string | undefined;
}

export interface VerifiedClientCertificate {
  readonly certificate: X509Certificate;
  /** Why the certificate is not trusted; undefined if it is trusted. */
  readonly untrusted: string | undefined;
}

export interface RequestSecurity {
  /** Returns the authenticated or anonymous user. Throws a StatusError for invalid credentials. */
  authenticate(facts: ClientInfo, signal: AbortSignal): ApiUser | Promise<ApiUser>;
  authorize(
    user: ApiUser,
    attributes: AccessAttributes,
    signal: AbortSignal,
  ): AuthorizationResult | Promise<AuthorizationResult>;
}

export interface AuthorizationResult {
  readonly allowed: boolean;
  /** The reason, which is appended to the message of the Forbidden error. */
  readonly reason?: string | undefined;
}

/** The documents of discovery, OpenAPI and version. */
export interface PublishedDocuments {
  /** Returns the document for a path; undefined for unknown paths. */
  document(request: DocumentRequest): PlainResponse | undefined | Promise<PlainResponse | undefined>;
}

export interface DocumentRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface PlainResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** An authorized request for a streaming or proxy subresource. */
export interface StreamCall {
  readonly user: ApiUser;
  readonly entry: ResourceEntry;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: string;
  /** For a proxy the path after the subresource, with its slash; otherwise empty. */
  readonly rest: string;
  readonly query: URLSearchParams;
  readonly incoming: IncomingMessage;
  readonly auditId: string;
}

export interface StreamProxy {
  serves(entry: ResourceEntry, subresource: string): boolean;
  /**
   * Sends the complete response. A StatusError thrown before the headers are sent becomes the
   * response.
   */
  respond(call: StreamCall, outgoing: ServerResponse, signal: AbortSignal): Promise<void>;
  /**
   * Uses the connection for the stream and closes it at the end. A StatusError thrown before the
   * first byte becomes the response.
   */
  upgrade(call: StreamCall, socket: Duplex, head: Uint8Array, signal: AbortSignal): Promise<void>;
}
