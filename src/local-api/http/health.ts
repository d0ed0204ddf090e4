import type { FrontDeps } from './front-deps.ts';
import { type Reply, textReply } from './reply.ts';

const endpoints: ReadonlySet<string> = new Set(['healthz', 'livez', 'readyz']);

/** Undefined for a path that asks for something else. `/readyz/name` asks for one check alone. */
export function healthReply(
  path: string,
  query: URLSearchParams,
  { checks = {} }: Pick<FrontDeps, 'checks'>,
): Reply | undefined {
  const [, endpoint = '', name, ...rest] = path.split('/');
  if (!endpoints.has(endpoint) || rest.length > 0) return undefined;
  const asked: Checks = { ping: () => undefined, ...(endpoint === 'livez' ? {} : checks) };
  if (name !== undefined)
    return Object.hasOwn(asked, name) ? judged(name, { [name]: asked[name] }) : undefined;
  const excluded = new Set(query.getAll('exclude'));
  const left = Object.fromEntries(Object.entries(asked).filter(([check]) => !excluded.has(check)));
  return judged(endpoint, left, query.has('verbose') ? 'verbose' : 'brief');
}

type Checks = Readonly<Record<string, (() => string | undefined) | undefined>>;

function judged(what: string, checks: Checks, length: 'verbose' | 'brief' = 'brief'): Reply {
  const results = Object.entries(checks).map(([name, check]) => ({ name, problem: check?.() }));
  const failed = results.some(({ problem }) => problem !== undefined);
  if (!failed && length === 'brief') return textReply(200, 'ok');
  const lines = results.map(({ name, problem }) =>
    problem === undefined ? `[+]${name} ok` : `[-]${name} failed: ${problem}`,
  );
  const verdict = `${what} check ${failed ? 'failed' : 'passed'}`;
  return textReply(failed ? 500 : 200, `${[...lines, verdict].join('\n')}\n`);
}
