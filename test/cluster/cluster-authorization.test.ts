import { authorizationMatrix } from './suites/authorization.ts';
import { realCluster } from './suites/place.ts';

authorizationMatrix(realCluster);
