import type { Logger } from '../../lib/index.ts';
import {
  type Authenticator,
  anonymousUser,
  type Caller,
  type User,
  withAuthenticatedGroup,
} from './identity.ts';

export interface AuthenticationPolicy {
  /** In order; the first that knows the caller decides. */
  readonly methods: readonly Authenticator[];
  /** What becomes of who shows nothing at all. Who shows something bad is refused in any case. */
  readonly anonymous: 'allowed' | 'refused';
  readonly logger: Logger;
}

/** Who calls; undefined for who is to be refused. */
export async function authenticate(
  { methods, anonymous, logger }: AuthenticationPolicy,
  caller: Caller,
  signal: AbortSignal,
): Promise<User | undefined> {
  const errors: unknown[] = [];
  for (const method of methods) {
    const outcome = await method.authenticate(caller, signal);
    if (outcome.kind === 'user') return withAuthenticatedGroup(outcome.user);
    if (outcome.kind === 'failed') errors.push(outcome.error);
  }
  for (const error of errors) logger.error('Cannot tell who sent a request', error);
  return errors.length === 0 && anonymous === 'allowed' ? anonymousUser : undefined;
}
