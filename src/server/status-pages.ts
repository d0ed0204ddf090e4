import type { ContainerImage } from '../kinds/index.ts';
import { apiTime, type Clock, describeError, type Verbosity } from '../lib/index.ts';
import { disabledRoute, json, type Request, type Response, type Route, text } from './router.ts';

export interface StatuszFacts {
  readonly clock: Clock;
  readonly startMs: number;
  /** Version of the binary, such as `1.36.4`. */
  readonly version: string;
  /** Platform of the process, reported as `goVersion`. */
  readonly platform: string;
  readonly paths: () => readonly string[];
}

const group = 'config.k8s.io';
const versions: readonly (string | undefined)[] = ['v1beta1', 'v1alpha1'];
const warning = 'This page is for people who look for a fault; its form may change at any time.';

/** The /statusz route: status of the process. */
export function statuszRoute({ clock, startMs, version, platform, paths }: StatuszFacts): Route {
  const read = () => ({
    startTime: apiTime(startMs),
    uptimeSeconds: Math.floor((clock.now() - startMs) / 1_000),
    goVersion: platform,
    binaryVersion: version,
    emulationVersion: version.split('.').slice(0, 2).join('.'),
    paths: paths(),
  });
  const lines = (facts: ReturnType<typeof read>) => [
    `Started: ${facts.startTime}`,
    `Up: ${facts.uptimeSeconds} seconds`,
    `Platform: ${facts.goVersion}`,
    `Binary version: ${facts.binaryVersion}`,
    `Emulation version: ${facts.emulationVersion}`,
    `Paths: ${facts.paths.join(' ')}`,
  ];
  return page({ path: '/statusz', kind: 'Statusz', read, lines });
}

/** The /flagz route: flags in effect. Secret values must already be masked. */
export function flagzRoute(flags: () => Readonly<Record<string, string>>): Route {
  const read = () => ({ flags: flags() });
  const lines = ({ flags: all }: ReturnType<typeof read>) =>
    Object.entries(all).map(([name, value]) => `${name}=${value}`);
  return page({ path: '/flagz', kind: 'Flagz', read, lines });
}

interface Page<T extends object> {
  readonly path: string;
  readonly kind: string;
  readonly read: () => T;
  readonly lines: (facts: T) => readonly string[];
}

function page<T extends object>({ path, kind, read, lines }: Page<T>): Route {
  const respond = (request: Request): Response => {
    const form = requestedForm(request.headers.accept ?? '', kind);
    if (form.kind === 'none')
      return text(
        406,
        `only text/plain, or application/json or application/yaml with g=${group}, v=v1beta1 and as=${kind}, can be had\n`,
      );
    const facts = read();
    if (form.kind === 'text')
      return text(200, ['', `kubelet ${path.slice(1)}`, warning, '', ...lines(facts), ''].join('\n'));
    const object = { kind, apiVersion: `${group}/${form.version}`, metadata: { name: 'kubelet' }, ...facts };
    // JSON is also valid YAML, so the same text is returned for both.
    return { status: 200, contentType: form.contentType, body: `${JSON.stringify(object, undefined, 1)}\n` };
  };
  return { path, methods: ['GET'], answer: respond };
}

type Form =
  | { readonly kind: 'text' }
  | { readonly kind: 'none' }
  | { readonly kind: 'object'; readonly contentType: string; readonly version: string };

/**
 * Selects the first supported format that the client accepts. Objects need the exact group, version
 * and kind.
 */
function requestedForm(accept: string, kind: string): Form {
  if (accept.trim() === '') return { kind: 'text' };
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((word) => word.trim());
    if (['text/plain', 'text/*', '*/*'].includes(type)) return { kind: 'text' };
    const named = new Map(parameters.map((word) => word.split('=', 2) as [string, string]));
    const version = named.get('v');
    const isKnown = named.get('g') === group && named.get('as') === kind && versions.includes(version);
    const isObject = type === 'application/json' || type === 'application/yaml';
    if (isObject && isKnown && version !== undefined) return { kind: 'object', contentType: type, version };
  }
  return { kind: 'none' };
}

/**
 * The /configz route: configuration in effect, in the format of the configuration file. Secret
 * values must already be masked.
 */
export function configzRoute(config: () => Readonly<Record<string, unknown>>): Route {
  return { path: '/configz', methods: 'any', answer: () => json({ kubeletconfig: config() }) };
}

const path = '/debug/flags/v';
const maxBytes = 1_024;

/** The route that sets the log level at run time. */
export function debugFlagsRoute(verbosity: Pick<Verbosity, 'setLevel'> | 'disabled'): Route {
  if (verbosity === 'disabled') return disabledRoute(path, 'flags endpoint is disabled.\n');
  return {
    path,
    methods: 'any',
    body: 'read',
    answer: (request, signal) => setLevel(verbosity, request, signal),
  };
}

async function setLevel(
  verbosity: Pick<Verbosity, 'setLevel'>,
  request: Request,
  signal: AbortSignal,
): Promise<Response> {
  if (request.method !== 'PUT') return text(406, 'unsupported http method\n');
  try {
    const value = (await request.body(maxBytes, signal)).trim();
    if (!/^[-+]?\d{1,9}$/.test(value)) {
      return text(
        400,
        `failed set klog.logging.verbosity ${JSON.stringify(value)}: it must be a whole number\n`,
      );
    }
    verbosity.setLevel(Number(value));
    return text(200, `successfully set klog.logging.verbosity to ${value}\n`);
  } catch (error) {
    signal.throwIfAborted();
    return text(400, `failed set klog.logging.verbosity: ${describeError(error)}\n`);
  }
}

/**
 * The route that lists all images of the node, the largest first; a Node object contains only some
 * of them.
 */
export function imagesRoute(images: () => readonly ContainerImage[]): Route {
  return { path: '/debug/images', methods: ['GET'], answer: () => json({ images: images() }) };
}
