import type { Logger } from '../../lib/index.ts';
import { StatusError } from '../core/contract.ts';
import type { FrontSecurity } from '../http/front-deps.ts';
import type { AccessJudge } from '../kinds/index.ts';
import type { Authenticator } from './authenticator.ts';
import { impersonated } from './impersonation.ts';

export interface FrontSecurityDeps {
  readonly authenticator: Authenticator;
  readonly judge: AccessJudge;
  readonly log: Logger;
}

/** Who somebody is and what that one may, as the front asks it. Why somebody is not believed is ours to know. */
export function makeFrontSecurity({ authenticator, judge, log }: FrontSecurityDeps): FrontSecurity {
  return {
    authenticate({ certificate, headers, address }) {
      const found = authenticator.authenticate({ certificate, headers });
      if (found.kind !== 'refused') return impersonated(found.user, headers, judge);
      log.v(2)?.info('A caller is not who it says it is', { source: address, why: found.why });
      throw unauthorized();
    },
    authorize(user, attributes) {
      const { allowed, reason } = judge.judge(user, attributes);
      return { allowed, ...(reason === undefined ? {} : { reason }) };
    },
  };
}

function unauthorized(): StatusError {
  return new StatusError({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
}
