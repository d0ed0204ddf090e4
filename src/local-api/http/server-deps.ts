import type { X509Certificate } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { KindTable } from '../../kinds/index.ts';
import type { Clock, Logger, Random } from '../../lib/index.ts';
import type { AccessAttributes, ApiCall, ApiUser, ResourceEntry } from '../api/index.ts';
import type { ApiAnswer, WatchLine } from '../api/responses.ts';
import type { ConnectionLimits } from './connections.ts';

/** All that the front is given: it understands requests and words answers, and does nothing else itself. */
export interface FrontDeps {
  readonly api: FrontApi;
  readonly catalogue: FrontCatalogue;
  readonly table: KindTable;
  readonly security: FrontSecurity;
  readonly published: FrontPages;
  /** Without it, streaming subresources are answered as if nobody had them. */
  readonly streams?: FrontStreams | undefined;
  /** What `/readyz` asks, by name; a check that does not hold answers why. */
  readonly checks?: Readonly<Record<string, () => string | undefined>> | undefined;
  /** Pages of text besides those that are published, such as `/metrics`; asked after authorization. */
  readonly pages?: Readonly<Record<string, () => PlainAnswer | Promise<PlainAnswer>>> | undefined;
  /** How many requests may be under way at once, watches and streams aside; 600 unless given. */
  readonly mostAtOnce?: number | undefined;
  /** How many connections there may be; 512 of strangers and 1,024 of those who may do little unless given. */
  readonly connections?: Partial<ConnectionLimits> | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

/** Carries calls out. Refusals are thrown as StatusErrors. */
export interface FrontApi {
  handle(call: ApiCall, signal: AbortSignal): Promise<ApiAnswer>;
  /** Ends by itself when its time is over, and throws when it cannot begin or its reader was too slow. */
  watch(call: ApiCall, signal: AbortSignal): AsyncIterable<WatchLine>;
}

export interface FrontCatalogue {
  find(group: string, version: string, plural: string): ResourceEntry | undefined;
}

/** What is known of a caller before anybody decided who it is. */
export interface CallerFacts {
  readonly certificate: PeerCertificate | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly address: string | undefined;
}

export interface PeerCertificate {
  readonly certificate: X509Certificate;
  /** Undefined when one of the authorities vouches for it, else why none does. */
  readonly untrusted: string | undefined;
}

export interface FrontSecurity {
  /** Who it is, whoever that is: somebody without credentials is a user too. Throws a StatusError for bad ones. */
  authenticate(facts: CallerFacts, signal: AbortSignal): ApiUser | Promise<ApiUser>;
  authorize(
    user: ApiUser,
    attributes: AccessAttributes,
    signal: AbortSignal,
  ): AccessAnswer | Promise<AccessAnswer>;
}

export interface AccessAnswer {
  readonly allowed: boolean;
  /** Put behind the refusal, where there is something to say. */
  readonly reason?: string | undefined;
}

/** Discovery, OpenAPI and version. */
export interface FrontPages {
  /** Undefined for a path it does not have. */
  page(request: PageRequest): PlainAnswer | undefined | Promise<PlainAnswer | undefined>;
}

export interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
  readonly accept: string | undefined;
  readonly ifNoneMatch: string | undefined;
}

export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** A request for a subresource that is a stream, or is passed on. The caller may do it: that was asked before. */
export interface StreamCall {
  readonly user: ApiUser;
  readonly entry: ResourceEntry;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly subresource: string;
  /** What stands behind the subresource, with its slash: where a proxy leads. Empty if nothing does. */
  readonly rest: string;
  readonly query: URLSearchParams;
  readonly incoming: IncomingMessage;
  readonly auditId: string;
}

export interface FrontStreams {
  serves(entry: ResourceEntry, subresource: string): boolean;
  /** Answers all by itself. A StatusError thrown before anything was sent becomes the answer. */
  answer(call: StreamCall, outgoing: ServerResponse, signal: AbortSignal): Promise<void>;
  /** Takes the connection over. A StatusError thrown before anything was sent becomes the answer. */
  upgrade(call: StreamCall, socket: Duplex, head: Uint8Array, signal: AbortSignal): Promise<void>;
}
