import { apiError } from '../../../src/api/index.ts';
import { type ApiRequest, describeRequest, StatusError } from '../../../src/local-api/api/index.ts';

/** A refusal as a client words it; anything else stays what it is. */
export function refusedTo(request: ApiRequest, error: unknown): unknown {
  if (!(error instanceof StatusError)) return error;
  const { code, reason, message, details } = error.status;
  const seconds = details?.retryAfterSeconds;
  return apiError({
    what: describeRequest(request),
    status: code,
    answer: { code, reason, message },
    retryAfterMs: seconds === undefined ? undefined : seconds * 1_000,
  });
}

/** Does the work; what the API refuses is thrown as a client of it throws it. */
export function answered<T>(request: ApiRequest, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw refusedTo(request, error);
  }
}
