import type { IncomingMessage } from 'node:http';
import type { JsonObject } from '../../api/index.ts';
import type { KindTable } from '../../kinds/index.ts';
import type { ApiCall, ApiUser } from '../core/index.ts';
import { BodyDecoder } from './body/decode-body.ts';
import { expectedKind } from './body/expected.ts';
import { fieldValidation } from './body/field-validation.ts';
import { turnAfter } from './body/large-bodies.ts';
import { patchKind, readPatch } from './body/patch-body.ts';
import { readBytes } from './body/read-bytes.ts';
import {
  checkDeleteOptions,
  checkWriteOptions,
  deleteOptionsOf,
  isDryRun,
  isWrite,
  optionsKind,
} from './options.ts';
import type { Route } from './route.ts';

/** A request whose caller may do what it asks. */
export interface AdmittedRequest {
  readonly incoming: IncomingMessage;
  readonly user: ApiUser;
  readonly route: Route;
  readonly query: URLSearchParams;
  readonly warn: (text: string) => void;
}

type CallBody = Pick<ApiCall, 'body' | 'patch' | 'readPatched'>;

/** Makes calls of requests: reads and decodes what came along. */
export class CallReader {
  readonly #decoder: BodyDecoder;

  constructor(table: KindTable) {
    this.#decoder = new BodyDecoder(table);
  }

  /** Throws a refusal for options and bodies that cannot be understood. */
  async read(request: AdmittedRequest, signal: AbortSignal): Promise<ApiCall> {
    const { user, route, query, warn, incoming } = request;
    const { verb, entry, namespace, name, subresource } = route;
    if (isWrite(verb)) checkWriteOptions(verb, query, incoming.headers['content-type']);
    const sent: CallBody = isWrite(verb)
      ? await this.#body(request, signal)
      : { body: undefined, patch: undefined };
    const dryRun = isDryRun(verb, query, sent.body);
    return { user, verb, entry, namespace, name, subresource, query, ...sent, dryRun, warn };
  }

  async #body(request: AdmittedRequest, signal: AbortSignal): Promise<CallBody> {
    const { verb } = request.route;
    if (verb === 'patch') return await this.#patch(request, signal);
    const isDelete = verb === 'delete' || verb === 'deletecollection';
    const body = isDelete ? await this.#deletion(request, signal) : await this.#object(request, signal);
    return { body, patch: undefined };
  }

  async #patch({ incoming, route, query, warn }: AdmittedRequest, signal: AbortSignal): Promise<CallBody> {
    const patch = patchKind(incoming.headers['content-type']);
    const validation = fieldValidation(query, 'PatchOptions');
    const bytes = await readBytes(incoming, signal);
    const { value: body, duplicates } = readPatch(patch, bytes);
    await turnAfter(bytes);
    const how = { body, duplicates, expected: route.entry.resource, validation, warn };
    return { body, patch, readPatched: (patched) => this.#decoder.decodePatched(patched, how) };
  }

  async #object(request: AdmittedRequest, signal: AbortSignal): Promise<JsonObject> {
    const { incoming, route, query, warn } = request;
    const validation = fieldValidation(query, optionsKind(route.verb));
    const bytes = await readBytes(incoming, signal);
    return await this.#decode(request, bytes, { validation, warn }, signal);
  }

  async #deletion(request: AdmittedRequest, signal: AbortSignal): Promise<JsonObject | undefined> {
    const bytes = await readBytes(request.incoming, signal);
    const options =
      bytes.length === 0
        ? deleteOptionsOf(request.query)
        : await this.#decode(request, bytes, { validation: 'Ignore', warn: request.warn }, signal);
    if (options !== undefined) checkDeleteOptions(options);
    return options;
  }

  async #decode(
    { incoming, route }: AdmittedRequest,
    bytes: Buffer,
    how: Pick<Parameters<BodyDecoder['decode']>[0], 'validation' | 'warn'>,
    signal: AbortSignal,
  ): Promise<JsonObject> {
    const expected = expectedKind(route.entry, route.subresource, route.verb);
    const contentType = incoming.headers['content-type'];
    return await this.#decoder.decode({ bytes, contentType, expected, ...how }, signal);
  }
}
