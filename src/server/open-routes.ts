import { disabledRoute, type Route } from './router.ts';

/** What answers without a pod being entered or the node being changed. */
const openPaths = [
  '/healthz',
  '/healthz/',
  '/livez',
  '/livez/',
  '/readyz',
  '/readyz/',
  '/pods',
  '/stats/summary',
];
const debugPaths = ['/run/', '/exec/', '/attach/', '/portForward/', '/containerLogs/', '/runningpods/'];
const reading: readonly string[] = ['GET', 'HEAD'];

const debuggingDisabled: readonly Route[] = [...debugPaths, '/debug/pprof/', '/logs/'].map((path) =>
  disabledRoute(path, 'Debug endpoints are disabled.\n'),
);

/** What is left of the routes when `enableDebuggingHandlers` is off. */
export function withoutDebugging(routes: readonly Route[]): readonly Route[] {
  return [...routes.filter(isOpen), ...debuggingDisabled];
}

/** What the port serves that asks nobody who he is: the same, and only for reading. */
export function readOnlyRoutes(routes: readonly Route[]): readonly Route[] {
  const open = routes.filter(isOpen).filter(({ path }) => !/^\/(?:livez|readyz)/.test(path));
  return [...open.map(onlyReading), ...debuggingDisabled];
}

function isOpen({ path }: Route): boolean {
  return openPaths.includes(path) || path === '/metrics' || path.startsWith('/metrics/');
}

function onlyReading(route: Route): Route {
  const methods =
    route.methods === 'any' ? reading : route.methods.filter((method) => reading.includes(method));
  return { ...route, methods, answer: (request, signal) => route.answer(request, signal) };
}
