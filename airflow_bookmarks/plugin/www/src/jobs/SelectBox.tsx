import { chakra } from "@chakra-ui/react";

interface SelectBoxProps {
  /** For screen readers. */
  label: string;
  isOn: boolean | "indeterminate";
  onSelect: (isOn: boolean) => void;
}

/** A box that selects one job of the list, or all that are shown: the browser's own, as a list has a hundred of them. */
export function SelectBox({ label, isOn, onSelect }: SelectBoxProps) {
  return (
    // Its room is larger than what is seen of it, for a finger.
    <chakra.label display="inline-flex" p={1} m={-1} cursor="pointer">
      <chakra.input
        type="checkbox"
        aria-label={label}
        boxSize={4}
        accentColor="blue.solid"
        cursor="pointer"
        ref={(box: HTMLInputElement | null) => {
          if (box !== null) box.indeterminate = isOn === "indeterminate";
        }}
        checked={isOn === true}
        onChange={(event) => onSelect(event.currentTarget.checked)}
      />
    </chakra.label>
  );
}
