/**
 * The user of a request: the administrator by default, the node `n1` with its certificate, an
 * anonymous caller, or the service account of a saved token.
 */
export type RequestUser = 'admin' | 'node' | 'nobody' | { readonly token: string };

/** A request body that is sent unchanged because it is not JSON. */
export type RawBody = { readonly text: string } | { readonly base64: string };

/**
 * One request of a chapter. In all its strings, `<ns>` stands for the namespace of the chapter, and
 * `<a.metadata.uid>` for a field of the earlier response saved as `a`.
 */
export interface RequestStep {
  readonly kind: 'ask';
  /** The name of the step in the recording; by default the method and the path. */
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly as: RequestUser;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly raw?: RawBody;
  readonly keep?: string;
  /** Repeats the request until this condition holds; only the last response is recorded. */
  readonly until?: (response: { readonly code: number; readonly body: unknown }) => boolean;
  /** Selects the part of the response body to compare. */
  readonly compare?: (body: unknown) => unknown;
}

/** Opens a watch. A rejection is recorded like any other response. */
export interface OpenWatchStep extends Omit<RequestStep, 'kind' | 'until' | 'keep'> {
  readonly kind: 'watch';
  readonly name: string;
}

/** Waits until a watch has received this many events, or until it ends. */
export interface ReadEventsStep {
  readonly kind: 'hear';
  readonly what: string;
  readonly watch: string;
  readonly events: number | 'to-the-end';
  /** The name under which the last event is saved. */
  readonly keep?: string;
}

/** Makes the server drop its watch history. */
export interface DropHistoryStep {
  readonly kind: 'forget';
  readonly what: string;
}

export type Step = RequestStep | OpenWatchStep | ReadEventsStep | DropHistoryStep;

/** A chapter: steps that depend on each other and share a separate namespace. */
export interface Chapter {
  readonly name: string;
  readonly steps: readonly Step[];
}

type Given = Partial<Omit<RequestStep, 'kind' | 'method' | 'path'>> & {
  readonly accept?: string;
  readonly type?: string;
};

/** Builds a request step from a line such as `GET /api/v1/pods`. */
export function ask(line: string, given: Given = {}): RequestStep {
  const at = line.indexOf(' ');
  const { accept, type, headers, ...rest } = given;
  return {
    kind: 'ask',
    what: line,
    method: line.slice(0, at),
    path: line.slice(at + 1),
    as: 'admin',
    headers: {
      ...(accept === undefined ? {} : { accept }),
      ...(type === undefined ? {} : { 'content-type': type }),
      ...headers,
    },
    ...rest,
  };
}

export function create(path: string, body: unknown, given: Given = {}): RequestStep {
  return ask(`POST ${path}`, { body, ...given });
}

export const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

export function patch(
  kind: keyof typeof patchTypes,
  path: string,
  body: unknown,
  given: Given = {},
): RequestStep {
  return ask(`PATCH ${path}`, { body, type: patchTypes[kind], what: `PATCH ${kind} ${path}`, ...given });
}

export function watch(name: string, path: string, given: Given = {}): OpenWatchStep {
  const { until: _, keep: __, ...rest } = ask(`GET ${path}`, given);
  return { ...rest, kind: 'watch', name, what: `watch ${path}` };
}

export function hear(
  name: string,
  events: ReadEventsStep['events'],
  given: Partial<Omit<ReadEventsStep, 'kind'>> = {},
): ReadEventsStep {
  return { kind: 'hear', what: `hear ${name}`, watch: name, events, ...given };
}

/** Makes step names unique: repeated names get a number. */
export function chapter(name: string, steps: readonly Step[]): Chapter {
  const counts = new Map<string, number>();
  const named = steps.map((step) => {
    const count = (counts.get(step.what) ?? 0) + 1;
    counts.set(step.what, count);
    return count === 1 ? step : { ...step, what: `${step.what} (${count})` };
  });
  return { name, steps: named };
}
