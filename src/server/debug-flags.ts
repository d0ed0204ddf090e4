import { describeError, type Verbosity } from '../lib/index.ts';
import { disabledRoute, type Request, type Response, type Route, text } from './router.ts';

const path = '/debug/flags/v';
const maxBytes = 1_024;

/** Sets how much is logged while the process runs. */
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
    const written = (await request.body(maxBytes, signal)).trim();
    if (!/^[-+]?\d{1,9}$/.test(written)) {
      return text(
        400,
        `failed set klog.logging.verbosity ${JSON.stringify(written)}: it must be a whole number\n`,
      );
    }
    verbosity.setLevel(Number(written));
    return text(200, `successfully set klog.logging.verbosity to ${written}\n`);
  } catch (error) {
    signal.throwIfAborted();
    return text(400, `failed set klog.logging.verbosity: ${describeError(error)}\n`);
  }
}
