import { Alert } from "@chakra-ui/react";
import type { OwnershipPreview } from "../api/model";
import { Facts } from "./Facts";
import { ownerFactsOf, ownerWarningsOf } from "./owner";

/** Whose the job would be, and who may change it then. */
export function OwnerPreview({ seen }: { seen: OwnershipPreview }) {
  return (
    <>
      {ownerWarningsOf(seen).map((said) => (
        <Alert.Root key={said} status="warning" role="alert">
          <Alert.Indicator />
          <Alert.Description wordBreak="break-word">{said}</Alert.Description>
        </Alert.Root>
      ))}
      <Facts facts={ownerFactsOf(seen)} />
    </>
  );
}
